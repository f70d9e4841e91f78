"""What recipes add to a loop: a schedule of the learning rate, clipped gradients, averaged weights, evaluation and a
checkpoint after every epoch, from which the next one goes on."""

import tempfile
from pathlib import Path

import torch
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train = TensorDataset(torch.randn(320, 8), torch.randn(320, 1))
test = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
model = torch.nn.Linear(8, 1)
average = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=80)
checkpoint = Path(tempfile.mkdtemp()) / "checkpoint.pt"
for _epoch in range(4):
    if checkpoint.exists():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    for inputs, wanted in DataLoader(train, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        average.update_parameters(model)
        print("loss", repr(loss.item()), flush=True)
    with torch.no_grad():
        for inputs, wanted in DataLoader(test, batch_size=32):
            torch.nn.functional.mse_loss(average(inputs), wanted)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint)
