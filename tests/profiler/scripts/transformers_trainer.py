"""Hugging Face's Trainer, with gradients of two batches accumulated."""

import tempfile

import torch
import transformers


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def forward(self, inputs, labels):
        loss = torch.nn.functional.mse_loss(self.layer(inputs), labels)
        print("loss", repr(loss.item()), flush=True)
        return {"loss": loss}


torch.manual_seed(0)
data = [{"inputs": torch.randn(8), "labels": torch.randn(1)} for _ in range(1920)]
arguments = transformers.TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=16,
    gradient_accumulation_steps=2,
    num_train_epochs=1,
    use_cpu=True,
    report_to=[],
    save_strategy="no",
    disable_tqdm=True,
)
transformers.Trainer(model=Net(), args=arguments, train_dataset=data).train()
