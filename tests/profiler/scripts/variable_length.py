"""Sequences of different lengths, padded to the longest of their batch, in batches of a class of their own."""

import dataclasses

import torch
from torch.utils.data import DataLoader, Dataset


@dataclasses.dataclass
class Batch:
    tokens: torch.Tensor
    lengths: list


class Sentences(Dataset):
    def __len__(self):
        return 960

    def __getitem__(self, index):
        return torch.arange(1, 3 + index % 11)


def collate(sentences):
    lengths = [len(sentence) for sentence in sentences]
    return Batch(torch.nn.utils.rnn.pad_sequence(sentences, batch_first=True), lengths)


torch.manual_seed(0)
embedding, recurrent = torch.nn.Embedding(16, 8), torch.nn.GRU(8, 8, batch_first=True)
optimizer = torch.optim.Adam([*embedding.parameters(), *recurrent.parameters()])
for batch in DataLoader(Sentences(), batch_size=16, shuffle=True, collate_fn=collate):
    optimizer.zero_grad()
    loss = recurrent(embedding(batch.tokens))[0].pow(2).mean()
    loss.backward()
    optimizer.step()
    print("loss", repr(loss.item()), flush=True)
