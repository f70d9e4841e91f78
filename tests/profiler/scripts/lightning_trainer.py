"""PyTorch Lightning's Trainer."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, _index):
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        print("loss", repr(loss.item()), flush=True)
        return loss

    def validation_step(self, batch, _index):
        return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


lightning.seed_everything(0)
train = DataLoader(TensorDataset(torch.randn(480, 8), torch.randn(480, 1)), batch_size=16, shuffle=True)
test = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 1)), batch_size=16)
trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False)
trainer.fit(Net(), train, test)
