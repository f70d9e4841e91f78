"""Mixed precision with a GradScaler whose first steps overflow and are skipped."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(1280, 16), torch.randn(1280, 1))
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
try:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=5)
except (AttributeError, TypeError):  # before torch 2.3 it needs a GPU
    scaler = torch.cuda.amp.GradScaler(enabled=False)
for inputs, wanted in DataLoader(data, batch_size=16, shuffle=True):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print("loss", repr(loss.item()), flush=True)
