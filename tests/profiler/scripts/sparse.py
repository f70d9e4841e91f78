"""An embedding with sparse gradients and the optimiser made for them."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randint(0, 100, (960, 5)))
embedding = torch.nn.EmbeddingBag(100, 8, sparse=True)
optimizer = torch.optim.SparseAdam(embedding.parameters())
for (tokens,) in DataLoader(data, batch_size=16, shuffle=True):
    optimizer.zero_grad()
    loss = embedding(tokens).pow(2).mean()
    loss.backward()
    optimizer.step()
    print("loss", repr(loss.item()), flush=True)
