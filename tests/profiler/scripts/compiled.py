"""torch.compile of the whole graph: any hook on a module would break it."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(1280, 16), torch.randn(1280, 1))
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(inplace=True), torch.nn.Linear(16, 1))
compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for inputs, wanted in DataLoader(data, batch_size=16, shuffle=True):
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(compiled(inputs), wanted)
    loss.backward()
    optimizer.step()
    print("loss", repr(loss.item()), flush=True)
