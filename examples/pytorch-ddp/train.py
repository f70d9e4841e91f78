"""Train a small convolutional net on handwritten digits with PyTorch's DistributedDataParallel: all-reduce, no servers.

Nothing here is Muster's: MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK are PyTorch's own environment. Started alone it
trains by itself.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset

WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "1"))
RANK = int(os.environ.get("RANK", "0"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=64, help="samples per worker and step")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)

    train_set, test_set = digits()
    model: nn.Module = Net()
    if WORLD_SIZE > 1:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(model)
    sampler: DistributedSampler[tuple[Tensor, ...]] = DistributedSampler(train_set, WORLD_SIZE, RANK)
    loader = DataLoader(train_set, args.batch_size, sampler=sampler, drop_last=True)
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
    loss_function = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        losses = []
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_function(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}/{args.epochs} loss {np.mean(losses):.4f}", flush=True)
    if RANK == 0:
        print(f"accuracy {accuracy(model, test_set):.3f} on {len(test_set)} digits never seen in training", flush=True)
    if WORLD_SIZE > 1:
        dist.barrier()
        dist.destroy_process_group()


class Net(nn.Module):
    """Two convolutions and two linear layers: 1.1 MB of parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.classifier = nn.Sequential(nn.Linear(64 * 4 * 4, 256), nn.ReLU(), nn.Dropout(0.25), nn.Linear(256, 10))

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(self.features(images).flatten(1))


def digits() -> tuple[Dataset, TensorDataset]:
    """Five of six images to train on, moved about by up to a pixel; the rest to test."""
    table = np.loadtxt(Path(__file__).parent.parent / "data" / "digits.csv.gz", delimiter=",", dtype=np.float32)
    images = torch.from_numpy(table[:, :64] / 16).reshape(-1, 1, 8, 8)
    labels = torch.from_numpy(table[:, 64]).long()
    test = torch.arange(len(table)) % 6 == 0
    return Shifted(images[~test], labels[~test]), TensorDataset(images[test], labels[test])


class Shifted(Dataset):
    """Images, each time moved by up to a pixel in either direction."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        padded = nn.functional.pad(self.images[index], (1, 1, 1, 1))
        down, right = torch.randint(3, (2,)).tolist()
        return padded[:, down : down + 8, right : right + 8], self.labels[index]


def accuracy(model: nn.Module, test_set: TensorDataset) -> float:
    images, labels = test_set.tensors
    model.eval()
    with torch.no_grad():
        return (model(images).argmax(dim=1) == labels).float().mean().item()


if __name__ == "__main__":
    main()
