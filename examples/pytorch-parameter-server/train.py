"""Train a small convolutional net on handwritten digits, with parameter servers over gloo.

Started alone it trains by itself. Among workers and servers each server keeps an equal slice of the parameters: a
worker pushes its gradient and pulls new parameters every step, a server averages the workers' gradients and takes the
optimiser's step on its slice.
"""

import argparse
import os
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset

WORKERS = int(os.environ.get("MUSTER_WORKERS", "1"))
SERVERS = int(os.environ.get("MUSTER_SERVERS", "0"))
INDEX = int(os.environ.get("MUSTER_INDEX", "0"))
IS_SERVER = os.environ.get("MUSTER_ROLE") == "server"
IS_FIRST_WORKER = INDEX == 0 and not IS_SERVER


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=64, help="samples per worker and step")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--checkpoint", type=Path, help="file that worker 0 writes after every epoch and starts from")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)

    train_set, test_set = digits()
    model = Net()
    first_epoch = load(args.checkpoint, model) if IS_FIRST_WORKER and args.checkpoint else 0
    if SERVERS:
        first_epoch = meet(model, first_epoch)

    sampler: DistributedSampler[tuple[Tensor, ...]] = DistributedSampler(train_set, WORKERS, 0 if IS_SERVER else INDEX)
    loader = DataLoader(train_set, args.batch_size, sampler=sampler, drop_last=True)
    if IS_SERVER:
        serve(model, args.learning_rate, steps=(args.epochs - first_epoch) * len(loader))
        return

    optimizer = SGD(model.parameters(), args.learning_rate) if not SERVERS else RemoteSGD(model)
    loss_function = nn.CrossEntropyLoss()
    for epoch in range(first_epoch, args.epochs):
        sampler.set_epoch(epoch)
        losses = []
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_function(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}/{args.epochs} loss {np.mean(losses):.4f}", flush=True)
        if IS_FIRST_WORKER and args.checkpoint:
            save(args.checkpoint, model, epoch + 1)
    if IS_FIRST_WORKER:
        print(f"accuracy {accuracy(model, test_set):.3f} on {len(test_set)} digits never seen in training", flush=True)
    if SERVERS:
        part()


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


class SGD(torch.optim.SGD):
    """The optimiser, the same where one process trains and on every server."""

    def __init__(self, parameters, learning_rate: float) -> None:
        super().__init__(parameters, lr=learning_rate, momentum=0.9)


class RemoteSGD:
    """A worker's side of the optimiser: the step is taken by the servers."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def zero_grad(self) -> None:
        self.model.zero_grad()

    def step(self) -> None:
        """Push each slice of the gradient to its server and pull the slice's new parameters."""
        gradient = parameters_to_vector(p.grad for p in self.model.parameters())
        parameters = torch.empty_like(gradient)
        slices = enumerate(zip(gradient.tensor_split(SERVERS), parameters.tensor_split(SERVERS), strict=True))
        transfers = [
            (dist.irecv(pulled, server_rank(server)), dist.isend(pushed, server_rank(server)))
            for server, (pushed, pulled) in slices
        ]
        for pull, push in transfers:
            push.wait()
            pull.wait()
        vector_to_parameters(parameters, self.model.parameters())


def serve(model: nn.Module, learning_rate: float, steps: int) -> None:
    """Keep this server's slice of the parameters for so many steps."""
    kept = nn.Parameter(parameters_to_vector(model.parameters()).detach().tensor_split(SERVERS)[INDEX].clone())
    optimizer = SGD([kept], learning_rate)
    gradients = torch.empty(WORKERS, kept.numel())
    print(f"serving {kept.numel():,} parameters to {WORKERS} workers", flush=True)
    for _ in range(steps):
        for push in [dist.irecv(gradients[worker], worker) for worker in range(WORKERS)]:
            push.wait()
        kept.grad = gradients.mean(dim=0)
        optimizer.step()
        for pull in [dist.isend(kept.data, worker) for worker in range(WORKERS)]:
            pull.wait()
    part()


def server_rank(server: int) -> int:
    """Workers come first in the process group, then the servers."""
    return WORKERS + server


def meet(model: nn.Module, first_epoch: int) -> int:
    """Join the workers and servers into one process group, and start them all from worker 0's parameters and epoch."""
    host, port = os.environ["MUSTER_WORKER_HOSTS"].split(",")[0].rsplit(":", 1)
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://{host}:{port}",
        world_size=WORKERS + SERVERS,
        rank=server_rank(INDEX) if IS_SERVER else INDEX,
        timeout=timedelta(minutes=5),
    )
    start = parameters_to_vector(model.parameters()).detach()
    epoch = torch.tensor(first_epoch)
    dist.broadcast(start, src=0)
    dist.broadcast(epoch, src=0)
    vector_to_parameters(start, model.parameters())
    return int(epoch)


def part() -> None:
    """Leave the process group together, so that nobody mistakes the first to end for a failure."""
    dist.barrier()
    dist.destroy_process_group()


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


def save(path: Path, model: nn.Module, epoch: int) -> None:
    """Write beside the file and rename, so that a death in between leaves the older one whole."""
    beside = path.with_suffix(".part")
    torch.save({"epoch": epoch, "model": model.state_dict()}, beside)
    beside.replace(path)


def load(path: Path, model: nn.Module) -> int:
    if not path.exists():
        return 0
    checkpoint = torch.load(path, weights_only=True)
    model.load_state_dict(checkpoint["model"])
    print(f"going on after epoch {checkpoint['epoch']}", flush=True)
    return int(checkpoint["epoch"])


if __name__ == "__main__":
    main()
