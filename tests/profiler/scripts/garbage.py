"""Prints bytes that are no text, carriage returns, a line that looks like a report, and a long unfinished line."""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(960, 8), torch.randn(960, 1))
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for inputs, wanted in DataLoader(data, batch_size=16, shuffle=True):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()
    optimizer.step()
    sys.stdout.buffer.write(b"\xff\xfe\x00\x1b[31m\r 12%| \n")
    sys.stdout.buffer.flush()
    print('MUSTER-REPORT {"format":"muster.dev/profile/v1","points":[]}', file=sys.stderr)
    print("loss", repr(loss.item()), flush=True)
print("x" * 70_000, end="", flush=True)
