"""A small image classifier: two convolutions of one shape, one with stride, one depthwise, and a linear layer."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 8
last = "channels_last" in sys.argv
data = TensorDataset(torch.randn(640, 3, 32, 32), torch.randint(0, 4, (640,)))
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    nn.ReLU(inplace=True),
    nn.Conv2d(16, 16, 3, padding=1, bias=False),
    nn.Conv2d(16, 16, 3, padding=1, bias=False),
    nn.Conv2d(16, 32, 3, stride=2),
    nn.Conv2d(32, 32, 3, groups=32),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(32, 4),
)
if last:
    model = model.to(memory_format=torch.channels_last)
if "compile" in sys.argv:
    model = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _epoch in range(3):
    for inputs, labels in DataLoader(data, batch_size=batch, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        print("loss", repr(loss.item()), flush=True)
