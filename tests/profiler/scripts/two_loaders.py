"""Two loaders side by side, one batch of each for every step."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
labelled = DataLoader(TensorDataset(torch.randn(960, 8), torch.randn(960, 1)), batch_size=16, shuffle=True)
unlabelled = DataLoader(TensorDataset(torch.randn(1920, 8)), batch_size=32, shuffle=True)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for (inputs, wanted), (others,) in zip(labelled, unlabelled):  # noqa: B905
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), wanted) + model(others).var()
    loss.backward()
    optimizer.step()
    print("loss", repr(loss.item()), flush=True)
