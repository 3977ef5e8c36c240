# PyTorch on the same work as brood bench gpu, a JSON object a line: float32 without TF32, mlp (784-256-128-10).
# Usage: python3 - cuda|cpu SECONDS
import json
import sys
import time

import torch

device, long = sys.argv[1], float(sys.argv[2])
torch.backends.cuda.matmul.allow_tf32 = False
sizes = (784, 256, 128, 10)
params = sum(i * o + o for i, o in zip(sizes, sizes[1:]))


def wait():
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(f):
    f()
    wait()
    began = time.perf_counter()
    f()
    wait()
    return time.perf_counter() - began


def report(name, unit, work, f):
    best, began = seconds(f), time.perf_counter()
    while time.perf_counter() - began < long:
        best = min(best, seconds(f))
    print(json.dumps({"name": "PyTorch " + torch.__version__ + ", " + name, "value": work / best, "unit": unit}), flush=True)


def filled(name, unit, most, each, make):
    """Twice as many entries until a call takes a twentieth of a second."""
    n = 1
    while True:
        f = make(n)
        if 2 * n > most or seconds(f) > 0.05:
            report(f"{name}, {n} at once", unit, n * each, f)
            return
        n *= 2


def gaussian(n):
    x = torch.zeros(n, params, device=device)
    return lambda: x.add_(torch.randn(n, params, device=device), alpha=0.01)


def replicas(n):
    x = torch.rand(n, 128, 784, device=device)
    y = torch.randint(0, 10, (n * 128,), device=device)
    w = [(torch.randn(n, i, o, device=device) * 0.05).requires_grad_() for i, o in zip(sizes, sizes[1:])]
    b = [torch.zeros(n, 1, o, device=device, requires_grad=True) for o in sizes[1:]]

    def step():
        h = x
        for k in range(3):
            h = torch.baddbmm(b[k], h, w[k])
            h = torch.relu(h) if k < 2 else h
        torch.autograd.grad(torch.nn.functional.cross_entropy(h.reshape(-1, 10), y, reduction="sum"), w + b)

    return step


def candidates(pairs):
    n = 2 * pairs
    x = torch.rand(256, 784, device=device)
    y = torch.randint(0, 10, (256,), device=device)
    w = [torch.randn(i, o, device=device) * 0.05 for i, o in zip(sizes, sizes[1:])]

    def evaluate():
        with torch.no_grad():
            h = x.expand(n, 256, 784)
            for k, v in enumerate(w):
                e = torch.randn(pairs, *v.shape, device=device) * 0.01
                h = torch.bmm(h, torch.cat([v + e, v - e]))
                h = torch.relu(h) if k < 2 else h
            torch.nn.functional.cross_entropy(h.reshape(-1, 10), y.repeat(n), reduction="none").view(n, 256).mean(1)

    return evaluate


filled("parameters + sigma * Gaussian", "G/s", 512, params * 1e-9, gaussian)
filled("mlp, batch 128, replicas", "samples/s", 256, 128, replicas)
filled("mlp, batch 256, pairs of full candidates", "evaluations/s", 2048, 2, candidates)
