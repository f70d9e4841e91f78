"""An endless stream of samples; the loop counts its steps itself."""

import itertools

import torch
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        for index in itertools.count():
            sample = torch.full((8,), (index % 7) / 7.0)
            yield sample, sample.sum().reshape(1)


torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for inputs, wanted in itertools.islice(DataLoader(Stream(), batch_size=16), 60):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()
    optimizer.step()
    print("loss", repr(loss.item()), flush=True)
