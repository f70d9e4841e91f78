"""Hugging Face's Trainer on a language model made of a configuration, its output tied to its embedding; dropout, and
gradients of two batches accumulated."""

import tempfile

import torch
import transformers


class Trainer(transformers.Trainer):
    def training_step(self, *arguments, **options):
        loss = super().training_step(*arguments, **options)
        print("loss", repr(loss.item()), flush=True)
        return loss


transformers.set_seed(0)
model = transformers.GPT2LMHeadModel(
    transformers.GPT2Config(
        vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
    )
)
words = torch.randint(0, 64, (960, 16))
arguments = transformers.TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=16,
    gradient_accumulation_steps=2,
    num_train_epochs=2,
    use_cpu=True,
    report_to=[],
    save_strategy="no",
    disable_tqdm=True,
)
data = [{"input_ids": each, "labels": each} for each in words]
Trainer(model=model, args=arguments, train_dataset=data).train()
