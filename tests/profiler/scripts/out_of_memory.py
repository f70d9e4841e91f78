"""Asks for more memory than any machine has when the batch is 64 or more."""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
batch = int(sys.argv[1])
data = TensorDataset(torch.randn(1920, 8), torch.randn(1920, 1))
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _epoch in range(3):
    for inputs, wanted in DataLoader(data, batch_size=batch, shuffle=True):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        if batch >= 64:
            torch.empty(1 << 50)
        loss.backward()
        optimizer.step()
        print("loss", repr(loss.item()), flush=True)
