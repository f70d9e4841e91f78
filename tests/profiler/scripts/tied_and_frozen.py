"""An embedding tied to the output layer, a frozen layer, and one that never gets a gradient."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 8)
        self.frozen = torch.nn.Linear(8, 8)
        self.unused = torch.nn.Linear(8, 8)
        self.output = torch.nn.Linear(8, 50)
        self.output.weight = self.embedding.weight
        self.frozen.requires_grad_(False)

    def forward(self, tokens):
        return self.output(self.frozen(self.embedding(tokens).mean(1)))


data = TensorDataset(torch.randint(0, 50, (960, 5)), torch.randint(0, 50, (960,)))
model = Net()
optimizer = torch.optim.SGD([parameter for parameter in model.parameters() if parameter.requires_grad], lr=0.01)
for tokens, labels in DataLoader(data, batch_size=16, shuffle=True):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(tokens), labels)
    loss.backward()
    optimizer.step()
    print("loss", repr(loss.item()), flush=True)
