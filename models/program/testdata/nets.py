"""Models of the tests, and the same training without brood."""
import os
import random
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.f1, self.f2 = nn.Linear(800, 500), nn.Linear(500, 10)

    def forward(self, x):
        x = F.max_pool2d(self.c2(F.max_pool2d(self.c1(x), 2)), 2)
        return self.f2(F.relu(self.f1(x.flatten(1))))


class Block(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.c2, self.n2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        self.stride, self.pad = stride, b - a

    def forward(self, x):
        y = self.n2(self.c2(F.relu(self.n1(self.c1(x)))))
        return F.relu(y + F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.pad)))


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        wide = [16] * 4 + [32] * 3 + [64] * 3
        self.c, self.n = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        self.blocks = nn.Sequential(*[Block(a, b, 1 if a == b else 2) for a, b in zip(wide, wide[1:])])
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc(self.blocks(F.relu(self.n(self.c(x)))).mean((2, 3)))


class GPT(nn.Module):
    """A character model with dropout: context 32, three layers."""

    def __init__(self, wide=96, layers=3, context=32, letters=64):
        super().__init__()
        self.token, self.place = nn.Embedding(letters, wide), nn.Embedding(context, wide)
        layer = nn.TransformerEncoderLayer(wide, 4, 4 * wide, dropout=.1, batch_first=True, norm_first=True)
        self.body, self.norm = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), nn.LayerNorm(wide)
        self.head = nn.Linear(wide, letters)

    def forward(self, x):
        n = x.shape[1]
        mask = torch.full((n, n), float("-inf")).triu(1)
        return self.head(self.norm(self.body(self.token(x) + self.place(torch.arange(n)), mask)))


def next_letter(model, batch):
    text, = batch
    return F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


class Shifted(torch.utils.data.Dataset):
    """Images of noise, each moved by a random number of pixels when it is read."""

    def __len__(self):
        return 600

    def __getitem__(self, i):
        x = torch.randn(1, 28, 28, generator=torch.Generator().manual_seed(i))
        return x.roll(random.randrange(28), 2), i % 10


class Spectral(nn.Module):
    """Buffers that are written in place, those of spectral normalisation, and one that is assigned."""

    def __init__(self):
        super().__init__()
        self.fc = nn.utils.parametrizations.spectral_norm(nn.Linear(784, 10))
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x):
        x = self.fc(x.flatten(1))
        if self.training:
            self.scale = .9 * self.scale + .1 * x.detach().std()
        return x / self.scale


class Odd(torch.optim.Optimizer):
    """An optimiser whose state has numbers, None, and tensors of other types; with grows, a new tensor at step 5."""

    def __init__(self, params, lr, grows=False):
        super().__init__(params, dict(lr=lr, grows=grows, last=None))

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                s = self.state[p]
                s.setdefault("half", torch.zeros_like(p, dtype=torch.bfloat16))
                s.setdefault("whole", torch.zeros(3, dtype=torch.int8))
                s["count"], s["even"] = s.get("count", 0) + 1, s.get("count", 0) % 2 == 1
                s["half"].mul_(.5).add_(p.grad)
                s["whole"].add_(1)
                p.data.add_(s["half"] * (2. if s["even"] else 1.), alpha=-group["lr"] * s["count"])
                if group["grows"] and s["count"] == 5:
                    s["more"] = torch.zeros(1)
            group["last"] = group["lr"]

    def load_state_dict(self, state):
        super().load_state_dict(state)
        for s in self.state.values():  # the base class converts them to the type of the parameter
            s["half"], s["whole"] = s["half"].bfloat16(), s["whole"].to(torch.int8)


class Scaler:
    """As a GradScaler: the scale grows by half of itself each step."""

    def __init__(self):
        self.now = 2.

    def scale(self, loss):
        return loss * self.now

    def unscale_(self, optimiser):
        for group in optimiser.param_groups:
            for p in group["params"]:
                p.grad.div_(self.now)

    def step(self, optimiser):
        optimiser.step()

    def update(self):
        self.now *= 1.5

    def state_dict(self):
        return {"scale": self.now}

    def load_state_dict(self, state):
        self.now = state["scale"]


def problem(name):
    """The class, the arguments of brood.serve, and a batch size."""
    g = torch.Generator().manual_seed(1)
    if name == "gpt":
        base = torch.randint(0, 64, (64,), generator=g).tile(64)  # text that repeats
        windows = base.unfold(0, 33, 1)[:1024].clone()
        return GPT, dict(compute=next_letter, train=(windows[:896],), test=(windows[896:],)), 16
    if name == "spectral":
        make, data, size = problem("lenet")
        names = ["scale"] + ["fc.parametrizations.weight.0._" + v for v in "uv"]
        return Spectral, dict(data, buffers=names[:2] if "two" in sys.argv else names), size
    if name == "shifted":
        return LeNet, dict(loss=F.cross_entropy, train=Shifted(), test=Shifted()), 128
    shape, net = ((1, 28, 28), LeNet) if name == "lenet" else ((3, 32, 32), ResNet20)
    y = torch.randint(0, 10, (1280,), generator=g)
    x = torch.randn(10, *shape, generator=g)[y] + torch.randn(1280, *shape, generator=g)
    return net, dict(loss=F.cross_entropy, train=(x[:1024], y[:1024]), test=(x[1024:], y[1024:])), 128


def plain(name):
    """Steps of SGD with momentum without brood: reads numbers of steps, writes seconds."""
    make, data, size = problem(name)
    torch.manual_seed(0)
    model = make()
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-5, momentum=.9, nesterov=True)
    for line in sys.stdin:
        began = time.perf_counter()
        for _ in range(int(line)):
            at = torch.randint(0, len(data["train"][0]), (size,))
            batch = tuple(x[at] for x in data["train"])
            optimiser.zero_grad(set_to_none=False)
            loss = data["compute"](model, batch) if "compute" in data else data["loss"](model(batch[0]), batch[1])
            loss.backward()
            optimiser.step()
            float(loss.detach())
        print(time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "plain":
        plain(sys.argv[2])
    else:
        sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
        import brood
        make, data, size = problem(sys.argv[1])
        if 'radam' in sys.argv:
            data['optimiser'] = lambda model, eta: torch.optim.RAdam(model.parameters(), lr=eta)
        if 'optimiser' in sys.argv:
            data['optimiser'] = lambda model, eta: torch.optim.SGD(model.parameters(), lr=eta, momentum=.9, nesterov=True)
        if 'odd' in sys.argv:
            data['optimiser'] = lambda model, eta: Odd(model.parameters(), eta, 'grows' in sys.argv)
            data['scaler'] = Scaler()
        brood.serve(make, steps='steps' in sys.argv, candidates='candidates' in sys.argv,
                    workers=2 * ('workers' in sys.argv), batch=100, **data)
