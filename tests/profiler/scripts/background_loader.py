"""Fetches its batches in a thread of its own, two ahead."""

import queue
import threading

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(960, 8), torch.randn(960, 1))
ready = queue.Queue(2)


def fetch():
    for batch in DataLoader(data, batch_size=16):
        ready.put(batch)
    ready.put(None)


model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
threading.Thread(target=fetch, daemon=True).start()
while True:
    batch = ready.get()
    if batch is None:
        break
    inputs, wanted = batch
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()
    optimizer.step()
    print("loss", repr(loss.item()), flush=True)
