"""An image classifier. With `truth` and mini-batches: prints each one's peak in bytes by torch's own MemTracker."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def made():
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 64, 128),
        nn.Dropout(),
        nn.Linear(128, 10),
    )
    return model, torch.optim.Adam(model.parameters(), foreach=False)


def iterate(model, optimizer, pictures, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(pictures), labels)
    loss.backward()
    optimizer.step()
    return loss


def truth(batches):
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker

    for batch in batches:
        with FakeTensorMode():
            model, optimizer = made()
            tracker = MemTracker()
            tracker.track_external(model, optimizer)
            with tracker:
                for _ in range(2):
                    iterate(model, optimizer, torch.empty(batch, 3, 16, 16), torch.empty(batch, dtype=torch.long))
                    tracker.reset_mod_stats()
        print(tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"])


if sys.argv[1] == "truth":
    truth(map(int, sys.argv[2:]))
else:
    torch.manual_seed(0)
    model, optimizer = made()
    data = TensorDataset(torch.randn(4096, 3, 16, 16), torch.randint(0, 10, (4096,)))
    for pictures, labels in DataLoader(data, batch_size=int(sys.argv[1])):
        print("loss", iterate(model, optimizer, pictures, labels).item())
