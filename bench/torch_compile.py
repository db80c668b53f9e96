"""The subjects of compile_bench.cpp in PyTorch, as they are and through torch.compile. Prints {name: {plain_us, compiled_us, making_us}} as JSON."""
import argparse
import json
import re
import time

import torch
import torch.nn.functional as F
from torch import nn


def chapter():
    return nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 2))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def infer(net, x):
    net.eval()

    def f(a):
        with torch.no_grad():
            return net(a)
    return f, (x,)


def step(net, optimizer, x, classes):
    y = torch.randint(0, classes, (x.shape[0],))

    def f(images, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        return loss
    return f, (x, y)


def train(make, choose, shape, classes):
    net = make()
    return step(net, choose(net.parameters()), torch.randn(shape), classes)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-4)


# How to make each subject, and how many calls are timed at once: those of compile_bench.cpp.
subjects = {
    "compile/four_operators/4": (lambda: (lambda a: -((a + 1.0) * 2.0 - a), (torch.randn(4),)), 1000),
    "compile/gelu_of_parts/10000000": (lambda: (lambda a: a * 0.5 * (torch.erf(a * 0.7071067811865476) + 1.0), (torch.randn(10_000_000),)), 1),
    "compile/forward/1": (lambda: infer(chapter(), torch.randn(1, 512)), 100),
    "compile/forward/64": (lambda: infer(chapter(), torch.randn(64, 512)), 100),
    "compile/lenet_forward/64": (lambda: infer(lenet(), torch.randn(64, 1, 28, 28)), 10),
    "compile/step/1": (lambda: train(chapter, sgd, (1, 512), 2), 50),
    "compile/step/256": (lambda: train(chapter, sgd, (256, 512), 2), 5),
    "compile/lenet/64": (lambda: train(lenet, adam, (64, 1, 28, 28), 10), 2),
    "compile/lenet/256": (lambda: train(lenet, adam, (256, 1, 28, 28), 10), 2),
}


def seconds(f, arguments, calls):
    start = time.perf_counter()
    for _ in range(calls):
        f(*arguments)
    return (time.perf_counter() - start) / calls


def measure(make, calls, turns):
    """The two take turns, so that both see the same machine."""
    f, arguments = make()
    compiled = torch.compile(f)
    seconds(f, arguments, 3)
    making = seconds(compiled, arguments, 3) * 3
    plain, fast = [], []
    for _ in range(turns):
        plain.append(seconds(f, arguments, calls))
        fast.append(seconds(compiled, arguments, calls))
    return {"plain_us": min(plain) * 1e6, "compiled_us": min(fast) * 1e6, "making_us": max(0.0, making - 3 * min(plain)) * 1e6}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filter", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    print(json.dumps({name: measure(*subject, options.turns) for name, subject in subjects.items() if re.search(options.filter, name)}))


if __name__ == "__main__":
    main()
