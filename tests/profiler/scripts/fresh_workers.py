"""Loader workers that are started anew and import the framework themselves, as is usual from Python 3.14 on."""

import torch
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __len__(self):
        return 960

    def __getitem__(self, index):
        return torch.randn(16, generator=torch.Generator().manual_seed(index)), index % 4


if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, labels in DataLoader(Noisy(), batch_size=16, num_workers=2, multiprocessing_context="forkserver"):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        print("loss", repr(loss.item()), flush=True)
