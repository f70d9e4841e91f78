"""Two loader workers that stay between epochs; Adam; batches that the workers shuffle and augment."""

import torch
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        return torch.randn(16, generator=torch.Generator().manual_seed(index)), index % 4


if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(Noisy(), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
    for _epoch in range(4):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            print("loss", repr(loss.item()), flush=True)
