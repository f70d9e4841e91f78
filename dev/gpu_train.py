"""What `make gpu-check` profiles: a small convolutional net on a GPU, whose loader takes a known time.

Arguments: eager, amp or compiled; the mini-batch; optionally the iterations of a plain run, after which it prints one
line of JSON, what it saw of itself: times by its own CUDA events, memory by the allocator, its parameters. The net is
deep, so that 32 bits can count the elements of each tensor even at the largest batch that fits.
"""

import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

kind, batch = sys.argv[1], int(sys.argv[2])
iterations = int(sys.argv[3]) if len(sys.argv) > 3 else 0
LOAD_SECONDS = 0.01


class Pictures(Dataset):  # type: ignore[misc]
    """The same whole batch over and over: making it costs nothing, loading it a sleep."""

    def __init__(self) -> None:
        self.batch = torch.randn(batch, 3, 64, 64), torch.randint(0, 10, (batch,))

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, _index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(LOAD_SECONDS)
        return self.batch


torch.manual_seed(0)
deep = [layer for _ in range(8) for layer in (nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())]
model = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), *deep, nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(),
    nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, 10),
).cuda()  # fmt: skip
run = torch.compile(model) if kind == "compiled" else model
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scaler = torch.amp.GradScaler("cuda", enabled=kind == "amp")
seen: list[dict[str, float]] = []
began = time.perf_counter()
for pictures, labels in DataLoader(Pictures(), batch_size=None):
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
    marks[0].record()
    inputs, wanted = pictures.cuda(), labels.cuda()
    marks[1].record()
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16, enabled=kind == "amp"):
        loss = nn.functional.cross_entropy(run(inputs), wanted)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    marks[2].record()
    loss.item()
    now = time.perf_counter()
    seen.append(
        {
            "iteration": now - began,
            "copy": marks[0].elapsed_time(marks[1]) / 1e3,
            "compute": marks[1].elapsed_time(marks[2]) / 1e3,
        }
    )
    began = now
    if len(seen) == 2:
        torch.cuda.reset_peak_memory_stats()
    if len(seen) == iterations:
        free, total = torch.cuda.mem_get_info()
        later = seen[len(seen) // 2 :]
        truth = {f"{key}Seconds": statistics.median(one[key] for one in later) for key in seen[0]}
        memory = {
            "peakBytes": torch.cuda.max_memory_allocated(),
            "outsideBytes": total - free - torch.cuda.memory_reserved(),
            "retries": torch.cuda.memory_stats()["num_alloc_retries"],
        }
        parameters = {name: each.numel() * each.element_size() for name, each in model.named_parameters()}
        print(json.dumps({**truth, **memory, "parameters": parameters}))
        break
