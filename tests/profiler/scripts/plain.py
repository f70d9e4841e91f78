"""A plain loop: DataLoader, SGD with momentum."""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 32
data = TensorDataset(torch.randn(640, 16), torch.randint(0, 4, (640,)))
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(inplace=True), torch.nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for _epoch in range(4):
    for inputs, labels in DataLoader(data, batch_size=batch, shuffle=True):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        print("loss", repr(loss.item()), flush=True)
