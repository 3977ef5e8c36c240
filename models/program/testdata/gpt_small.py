"""The built-in model gpt-small as a PyTorch module, served to brood: python3 gpt_small.py TEXT.

Its parameters have the order and the shapes of `brood models show gpt-small`."""
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

CONTEXT, BYTES, WIDE, HEADS, BLOCKS = 64, 128, 64, 4, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDE)
        self.attention = nn.MultiheadAttention(WIDE, HEADS, batch_first=True)
        self.norm2 = nn.LayerNorm(WIDE)
        self.inner, self.outer = nn.Linear(WIDE, 4 * WIDE), nn.Linear(4 * WIDE, WIDE)

    def forward(self, x):
        y, unseen = self.norm1(x), torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        x = x + self.attention(y, y, y, attn_mask=unseen, need_weights=False)[0]
        return x + self.outer(F.gelu(self.inner(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(torch.rand(CONTEXT, WIDE) * 2 - 1)
        self.embedding = nn.Embedding(BYTES, WIDE)
        self.blocks = nn.ModuleList([Block() for _ in range(BLOCKS)])
        self.norm, self.head = nn.LayerNorm(WIDE), nn.Linear(WIDE, BYTES)

    def forward(self, x):
        x = self.embedding(x) + self.positions[:x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def next_byte(model, batch):
    """The mean loss over all positions; a window has one byte more than the context."""
    text = batch[0].long()
    return F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


if __name__ == "__main__":
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
    import brood

    text = torch.frombuffer(bytearray(open(sys.argv[1], "rb").read()), dtype=torch.uint8)
    tests = len(text) // 6
    brood.serve(GPT, compute=next_byte, train=(text[:-tests].unfold(0, CONTEXT + 1, 1),),
                test=(text[-tests:].unfold(0, CONTEXT + 1, CONTEXT),))
