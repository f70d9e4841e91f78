"""No optimiser: the update is written out by hand."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(960, 8), torch.randn(960, 1))
model = torch.nn.Linear(8, 1)
for inputs, wanted in DataLoader(data, batch_size=16, shuffle=True):
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad
            parameter.grad = None
    print("loss", repr(loss.item()), flush=True)
