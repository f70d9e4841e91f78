"""Optimiser in backward: each parameter steps as soon as its gradient is there, and forgets it."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(960, 8), torch.randn(960, 1))
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizers = {parameter: torch.optim.SGD([parameter], lr=0.01) for parameter in model.parameters()}


def step(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(step)
for inputs, wanted in DataLoader(data, batch_size=16, shuffle=True):
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()
    print("loss", repr(loss.item()), flush=True)
