"""Goes to another directory, reads a file there by a relative path, and keeps a checkpoint there."""

import os
import tempfile

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    torch.save((torch.randn(960, 8), torch.randn(960, 1)), "data.pt")
    data = TensorDataset(*torch.load("data.pt"))
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, wanted in DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        torch.save(model.state_dict(), "checkpoint.pt")
        print("loss", repr(loss.item()), flush=True)
    os.chdir("/")
