"""Evaluates on another loader after every epoch."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.randn(240, 8), torch.randn(240, 1)), batch_size=16, shuffle=True)
test = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 1)), batch_size=32)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _epoch in range(6):
    model.train()
    for inputs, wanted in train:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        print("loss", repr(loss.item()), flush=True)
    model.eval()
    with torch.no_grad():
        error = sum(torch.nn.functional.mse_loss(model(inputs), wanted).item() for inputs, wanted in test)
