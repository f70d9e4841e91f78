"""Two networks with an optimiser each, both stepping on every batch."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(960, 8))
generator, critic = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
of_generator = torch.optim.Adam(generator.parameters())
of_critic = torch.optim.Adam(critic.parameters())
logistic = torch.nn.BCEWithLogitsLoss()
for (real,) in DataLoader(data, batch_size=16, shuffle=True):
    made = generator(torch.randn(len(real), 4))
    of_critic.zero_grad()
    loss = logistic(critic(real), torch.ones(len(real), 1)) + logistic(critic(made.detach()), torch.zeros(len(real), 1))
    loss.backward()
    of_critic.step()
    of_generator.zero_grad()
    fooled = logistic(critic(made), torch.ones(len(real), 1))
    fooled.backward()
    of_generator.step()
    print("loss", repr(loss.item()), repr(fooled.item()), flush=True)
