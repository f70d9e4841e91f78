"""Lightning's Fabric around a loop of one's own."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

fabric = lightning.Fabric(accelerator="cpu", devices=1)
fabric.launch()
fabric.seed_everything(0)
data = TensorDataset(torch.randn(1280, 8), torch.randn(1280, 1))
model = torch.nn.Linear(8, 1)
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.01))
for inputs, wanted in fabric.setup_dataloaders(DataLoader(data, batch_size=16, shuffle=True)):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    fabric.backward(loss)
    optimizer.step()
    print("loss", repr(loss.item()), flush=True)
