"""DistributedDataParallel, as many ranks as the launcher made, or one."""

import os

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29467", "RANK": "0", "WORLD_SIZE": "1"}.items():
    os.environ.setdefault(name, value)
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(0)
data = TensorDataset(torch.randn(2560, 16), torch.randn(2560, 1))
model = DistributedDataParallel(torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
sampler = DistributedSampler(data)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for inputs, wanted in DataLoader(data, batch_size=16, sampler=sampler):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        if rank == 0:
            print("loss", repr(loss.item()), flush=True)
torch.distributed.destroy_process_group()
