"""The training runs in a process that the script forks after it has imported the framework."""

import multiprocessing

import torch
from torch.utils.data import DataLoader, TensorDataset


def train():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(960, 8), torch.randn(960, 1))
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, wanted in DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        print("loss", repr(loss.item()), flush=True)


process = multiprocessing.get_context("fork").Process(target=train)
process.start()
process.join()
