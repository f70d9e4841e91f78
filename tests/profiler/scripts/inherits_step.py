"""An optimiser of its own that calls the step it inherits, and one step before any batch."""

import torch
from torch.utils.data import DataLoader, TensorDataset


class Decaying(torch.optim.SGD):
    def step(self, closure=None):
        for group in self.param_groups:
            group["lr"] *= 0.999
        return super().step(closure)


torch.manual_seed(0)
data = TensorDataset(torch.randn(960, 8), torch.randn(960, 1))
model = torch.nn.Linear(8, 1)
optimizer = Decaying(model.parameters(), lr=0.01)
optimizer.step()
for inputs, wanted in DataLoader(data, batch_size=16, shuffle=True):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()
    optimizer.step()
    print("loss", repr(loss.item()), flush=True)
