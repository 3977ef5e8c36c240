"""A model that brood trains, and the same training by DiLoCo and Parle written in plain PyTorch.

    reference.py serve LOG [steps|radam]
                                     serves the model, which may take steps itself or by an optimiser of its own, and
                                     logs the samples and the loss of every gradient
    reference.py diloco LOG MEMBERS [steps|radam]
                                     repeats the training on those samples, and prints the largest relative differences
    reference.py parle LOG MEMBERS   between losses here and there, in the first 120 of them and in all
"""
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
generator = torch.Generator().manual_seed(1)
y = torch.randint(0, 4, (512,), generator=generator)
x = torch.randn(4, 1, 12, 12, generator=generator)[y] * .15 + torch.randn(512, 1, 12, 12, generator=generator)
H = 4


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 6, 3), nn.Linear(150, 4)

    def forward(self, x):
        return self.fc(F.max_pool2d(torch.tanh(self.conv(x)), 2).flatten(1))


def serve(path):
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../models/program/python"))
    import brood
    log = open(path, "a")

    def compute(model, batch):
        a, b, at = batch
        loss = F.cross_entropy(model(a), b)
        if model.training:
            print(float(loss.detach()), *at.tolist(), file=log, flush=True)
        return loss
    torch.manual_seed(7)
    brood.serve(Net(), compute=compute, train=(x, y, torch.arange(512)), steps="steps" in sys.argv,
                optimiser=radam if "radam" in sys.argv else None)


def radam(model, eta):
    """RAdam with weight decay, and a tenth of the learning rate for the convolution."""
    return torch.optim.RAdam([dict(params=model.conv.parameters(), lr=eta / 10), dict(params=model.fc.parameters())],
                             lr=eta, weight_decay=.01)


def steps(path, members, together):
    """The loss and the samples of each gradient, step by step. The first of some tasks is computed twice."""
    size = H if together else 1  # lines of a task
    lines = list(open(path))
    tasks = [lines[i:i + size] for i in range(0, len(lines), size)]
    tasks = [t for t, before in zip(tasks, [None] + tasks) if t != before]
    for lo in range(0, len(tasks), members):
        for step in range(size):
            for task in tasks[lo:lo + members]:
                loss, *at = task[step].split()
                yield float(loss), torch.tensor([int(i) for i in at])


class Member:
    def __init__(self, start):
        self.model = Net()
        self.model.load_state_dict(start)

    def params(self):
        return [p.data for p in self.model.parameters()]

    def gradient(self, at):
        self.model.zero_grad()
        loss = F.cross_entropy(self.model(x[at]), y[at])
        loss.backward()
        return float(loss.detach()), [p.grad for p in self.model.parameters()]


def nesterov(params, momenta, gradients, eta, mu):
    for p, m, g in zip(params, momenta, gradients):
        m.mul_(mu).add_(g)
        p.sub_(eta * (g + mu * m))


def zeros(params):
    return [torch.zeros_like(p) for p in params]


def diloco(members, log, compare):
    inner = [radam(m.model, .003) if "radam" in sys.argv else
             torch.optim.AdamW(m.model.parameters(), lr=.003, weight_decay=.01) for m in members]
    centre = [p.clone() for p in members[0].params()]
    momentum = zeros(centre)
    while True:
        for _ in range(H):
            for m, o in zip(members, inner):
                loss, at = next(log)
                compare(loss, m.gradient(at)[0])
                o.step()
        delta = [c - torch.stack(p).mean(0) for c, p in zip(centre, zip(*[m.params() for m in members]))]
        nesterov(centre, momentum, delta, .7, .9)
        for m in members:
            for p, c in zip(m.params(), centre):
                p.copy_(c)


def parle(members, log, compare):
    gamma, rho, alpha, mu, eta, eta_in = 10., .5, .75, .9, .1, .02
    outer = [[p.clone() for p in m.params()] for m in members]
    inner_m, outer_m = [zeros(o) for o in outer], [zeros(o) for o in outer]
    while True:
        z = [[p.clone() for p in o] for o in outer]
        for m, o in zip(members, outer):
            for p, q in zip(m.params(), o):
                p.copy_(q)
        for _ in range(H):
            for m, o, zs, mom in zip(members, outer, z, inner_m):
                loss, at = next(log)
                here, g = m.gradient(at)
                compare(loss, here)
                pulled = [a + (p - q) / gamma for a, p, q in zip(g, m.params(), o)]
                nesterov(m.params(), mom, pulled, eta_in, mu)
                for a, p in zip(zs, m.params()):
                    a.mul_(alpha).add_((1 - alpha) * p)
        mean = [torch.stack(p).mean(0) for p in zip(*z)]
        for o, zs, mom in zip(outer, z, outer_m):
            nesterov(o, mom, [(p - a) + (p - r) / rho for p, a, r in zip(o, zs, mean)], eta, mu)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    torch.manual_seed(7)
    start = Net().state_dict()
    worst, early, count = 0., 0., 0

    def compare(there, here):
        global worst, early, count
        worst = max(worst, abs(there - here) / max(abs(here), .1))
        count += 1
        if count <= 120:  # ten rounds of three members
            early = worst
    try:
        members = int(sys.argv[3])
        log = steps(sys.argv[2], members, any(sys.argv[4:]))
        globals()[sys.argv[1]]([Member(start) for _ in range(members)], log, compare)
    except (StopIteration, RuntimeError):
        pass
    print(count, early, worst)
