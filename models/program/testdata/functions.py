"""A softmax regression by plain functions of numpy."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
import brood

rng = np.random.default_rng(1)
truth, x = rng.normal(size=(10, 4)), rng.normal(size=(1100, 4))
y = (x @ truth.T).argmax(1)


def softmax(p, samples):
    z = x[samples] @ p["w"].T
    e = np.exp(z - z.max(1, keepdims=True))
    e /= e.sum(1, keepdims=True)
    return e, e[np.arange(len(samples)), y[samples]]


def gradient(p, samples, seed):
    d, right = softmax(p, samples)
    d[np.arange(len(samples)), y[samples]] -= 1
    return -np.log(right).mean(), {"w": d.T @ x[samples] / len(samples)}


def evaluate(p, samples, seed):
    d, right = softmax(p, samples)
    return -np.log(right).sum(), (d.argmax(1) == y[samples]).sum()


brood.functions(parameters={"w": [10, 4]}, init=lambda seed: {"w": np.random.default_rng(seed).normal(size=(10, 4))},
                gradient=gradient, evaluate=evaluate, train=1000, test=100, data="softmax 1", score="classes")
