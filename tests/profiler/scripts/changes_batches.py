"""Takes its batches apart: pops from the dictionary, scales in place, asks for gradients of the input."""

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 960

    def __getitem__(self, index):
        return {"inputs": torch.full((8,), index % 5 + 1.0), "wanted": torch.ones(1), "name": f"row {index}"}


torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for batch in DataLoader(Rows(), batch_size=16, shuffle=True):
    assert len(batch.pop("name")) == 16
    inputs = batch["inputs"]
    assert 1.0 <= inputs.max() <= 5.0, "the batch was changed before it came"
    inputs.div_(100.0)
    inputs.requires_grad_()
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), batch.pop("wanted"))
    loss.backward()
    assert inputs.grad is not None
    optimizer.step()
    print("loss", repr(loss.item()), flush=True)
