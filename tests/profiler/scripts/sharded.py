"""Parameters sharded between as many ranks as the launcher made, or one (FSDP2)."""

import os
import tempfile

import torch
import torch.distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset

if "RANK" in os.environ:
    torch.distributed.init_process_group("gloo")
else:
    torch.distributed.init_process_group("gloo", f"file://{tempfile.mktemp()}", world_size=1, rank=0)
torch.manual_seed(0)
mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(inplace=True), torch.nn.Linear(16, 1))
fully_shard(model[0], mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(1280, 16), torch.randn(1280, 1))
for inputs, wanted in DataLoader(data, batch_size=16, shuffle=True):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()
    optimizer.step()
    print("loss", repr(loss.item()), flush=True)
torch.distributed.destroy_process_group()
