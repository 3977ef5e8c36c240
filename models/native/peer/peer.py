"""The figures of `brood bench` measured with PyTorch, so that both stand beside each other.

    peer.py measure                 one JSON object a line, as `brood bench SUITE --json` prints them
    peer.py table OURS PEER...      joins files of such lines by name

Bound the threads outside, before the library is loaded: OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1. PyTorch's own call binds
its threads but not those of OpenBLAS.
"""

import json
import sys
import time


def fastest(f, seconds=0.8):
    """The rate of f in calls a second: the best of many spells, since a neighbour only ever slows one down."""
    f()
    best, calls, began = 1e9, 1, time.perf_counter()
    while time.perf_counter() - began < seconds:
        at = time.perf_counter()
        for _ in range(calls):
            f()
        took = time.perf_counter() - at
        if took < 2e-4:
            calls *= 2
            continue
        best = min(best, took / calls)
    return 1 / best


def report(name, value, unit):
    print(json.dumps({"name": name, "value": value, "unit": unit}), flush=True)


def products(torch):
    for form, m, n, k in [("nt", 128, 256, 784), ("nt", 128, 128, 256), ("nt", 128, 10, 128), ("nn", 128, 256, 128),
                          ("tn", 256, 784, 128), ("nn", 512, 512, 512), ("nn", 1024, 1024, 1024), ("tn", 1024, 1024, 1024)]:
        a = torch.randn(k, m).t() if form == "tn" else torch.randn(m, k)
        b = torch.randn(n, k).t() if form == "nt" else torch.randn(k, n)
        out = torch.empty(m, n)
        rate = fastest(lambda: torch.mm(a, b, out=out))
        report(f"product {form} {m}x{n}x{k}", rate * 2e-9 * m * n * k, "GFLOP/s")


def nets(nn):
    flat = nn.Flatten
    def mlp():
        return nn.Sequential(flat(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    def caffe():
        return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), flat(),
                             nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))
    def lenet(a, b, c, last):
        return nn.Sequential(nn.Conv2d(1, a, 5), nn.BatchNorm2d(a), nn.ReLU(), nn.MaxPool2d(3), nn.Dropout(0.25),
                             nn.Conv2d(a, b, 5), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), flat(),
                             nn.Linear(last, c), nn.BatchNorm1d(c), nn.ReLU(), nn.Dropout(0.25), nn.Linear(c, 10))
    def allcnn():
        layers = []
        for i, o, k, s, p, drop in [(3, 96, 3, 1, 1, 0), (96, 96, 3, 1, 1, 0), (96, 96, 3, 2, 1, 1), (96, 192, 3, 1, 1, 0), (192, 192, 3, 1, 1, 0),
                                    (192, 192, 3, 2, 1, 1), (192, 192, 3, 1, 1, 0), (192, 192, 3, 1, 1, 0)]:
            layers += [nn.Conv2d(i, o, k, s, p), nn.BatchNorm2d(o), nn.ReLU()] + [nn.Dropout(0.5)] * drop
        return nn.Sequential(*layers, nn.Conv2d(192, 10, 1), nn.BatchNorm2d(10), nn.AvgPool2d(8), flat())
    return [("mlp", 128, (1, 28, 28), mlp), ("lenet-caffe", 128, (1, 28, 28), caffe), ("lenet", 128, (1, 28, 28), lambda: lenet(20, 50, 500, 200)),
            ("lenets", 128, (1, 28, 28), lambda: lenet(8, 16, 32, 64)), ("allcnn", 64, (3, 32, 32), allcnn)]


def train(torch):
    for name, batch, shape, make in nets(torch.nn):
        net, x, y = make(), torch.randn(batch, *shape), torch.randint(0, 10, (batch,))
        loss = torch.nn.CrossEntropyLoss()

        def step():
            net.zero_grad(set_to_none=True)
            loss(net(x), y).backward()

        report(f"{name}, batch {batch}", fastest(step) * batch, "samples/s")


def es(torch):
    for name, batch in [("mlp", 256), ("lenet-caffe", 128)]:
        _, _, shape, make = next(n for n in nets(torch.nn) if n[0] == name)
        net, x, y = make(), torch.randn(batch, *shape), torch.randint(0, 10, (batch,))
        theta = [p.detach().clone() for p in net.parameters()]

        def pair():
            with torch.no_grad():
                eps = [torch.randn_like(p) for p in theta]
                for sign in (0.01, -0.01):
                    for p, t, e in zip(net.parameters(), theta, eps):
                        torch.add(t, e, alpha=sign, out=p)
                    torch.nn.functional.cross_entropy(net(x), y)

        rate = fastest(pair) * 2
        for kind in "antithetic", "integer", "rank 1":  # the peer's full rank beside each
            report(f"{name}, batch {batch}, {kind}", rate, "evaluations/s")


def noise(torch):
    x = torch.empty(784 * 64)
    report("Gaussian", fastest(lambda: x.normal_()) * x.numel() * 1e-9, "G/s")


def measure():
    import torch

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    for suite in (products, train, es, noise):
        suite(torch)


def table(paths):
    files = [{m["name"]: m for m in map(json.loads, open(p))} for p in paths]
    print(f"{'what':44} {'brood':>12} {'unit':13} " + " ".join(f"{'peer':>12} {'ratio':>6}" for _ in files[1:]))
    for name, ours in files[0].items():
        if all(name in f for f in files[1:]):
            cells = (f"{f[name]['value']:12.4g} {ours['value'] / f[name]['value']:6.2f}" for f in files[1:])
            print(f"{name:44} {ours['value']:12.4g} {ours['unit']:13} " + " ".join(cells))


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        measure()
    elif sys.argv[1:2] == ["table"] and len(sys.argv) > 3:
        table(sys.argv[2:])
    else:
        sys.exit(__doc__)
