"""Neither a DataLoader nor an optimiser."""

import torch

torch.manual_seed(0)
inputs, wanted = torch.randn(960, 8), torch.randn(960, 1)
weight = torch.nn.Parameter(torch.zeros(8, 1))
for start in range(0, 960, 16):
    loss = ((inputs[start : start + 16] @ weight - wanted[start : start + 16]) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        weight -= 0.01 * weight.grad
        weight.grad.zero_()
    print("loss", repr(loss.item()), flush=True)
