"""A plain loop: linear net, DataLoader, SGD."""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 32
data = TensorDataset(torch.randn(4096, 64), torch.randint(0, 10, (4096,)))
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for _epoch in range(10):
    for inputs, labels in DataLoader(data, batch_size=batch, shuffle=True):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        print("loss", repr(loss.item()))
