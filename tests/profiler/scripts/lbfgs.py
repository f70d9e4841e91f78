"""LBFGS: the step calls a closure that runs forward and backward many times."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(960, 8), torch.randn(960, 1))
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
for inputs, wanted in DataLoader(data, batch_size=16, shuffle=True):

    def closure(inputs=inputs, wanted=wanted):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        return loss

    print("loss", repr(optimizer.step(closure).item()), flush=True)
