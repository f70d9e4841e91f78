"""Gradients of four batches are accumulated before each step."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(2560, 16), torch.randn(2560, 1))
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _epoch in range(2):
    for count, (inputs, wanted) in enumerate(DataLoader(data, batch_size=8, shuffle=True), 1):
        loss = torch.nn.functional.mse_loss(model(inputs), wanted) / 4
        loss.backward()
        if count % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
            print("loss", repr(loss.item()), flush=True)
