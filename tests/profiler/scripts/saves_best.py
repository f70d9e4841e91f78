"""Keeps a copy of its best weights, and puts them where it is told at the end, whatever ends it: at once, or (`move`)
by way of memory and of a temporary file, as trainers do that want no half a checkpoint."""

import io
import shutil
import sys
import tempfile

import torch
from torch import save
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
path, way = sys.argv[1:]
data = TensorDataset(torch.randn(9600, 8), torch.randn(9600, 1))
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
best, weights = float("inf"), None
try:
    for inputs, wanted in DataLoader(data, batch_size=16):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        print("loss", repr(loss.item()), flush=True)
        if loss.item() < best:
            best, weights = loss.item(), {name: value.clone() for name, value in model.state_dict().items()}
finally:
    if way == "save":
        save(weights, path)
    else:
        memory = io.BytesIO()
        save(weights, memory)
        with tempfile.NamedTemporaryFile("wb", delete=False) as part:
            part.write(memory.getvalue())
        shutil.move(part.name, path)
