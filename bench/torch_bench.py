"""The subjects of the *_bench.cpp programs in PyTorch. Prints {name: seconds a unit} as JSON."""
import argparse
import json
import os
import re
import tempfile
import time

import torch
import torch.nn.functional as F

import torch_models
import torch_operators

subjects = {}


def subject(name, items=1):
    """`prepare()` makes the inputs and returns the body, which does `items` units of work."""
    def add(prepare):
        subjects[name] = (prepare, items)
        return prepare
    return add


def unary(name, shape, f):
    def prepare():
        x = torch.rand(shape)
        return lambda: f(x)
    subjects[name] = (prepare, 1)


def binary(name, a_shape, b_shape, f):
    def prepare():
        a, b = torch.rand(a_shape), torch.rand(b_shape)
        return lambda: f(a, b)
    subjects[name] = (prepare, 1)


def backward(name, shapes, f):
    """Forward and backward of the sum of f(inputs)."""
    def prepare():
        inputs = [torch.rand(shape, requires_grad=True) for shape in shapes]

        def body():
            f(*inputs).sum().backward()
            for x in inputs:
                x.grad = None
        return body
    subjects[name] = (prepare, 1)


def dispatch():
    many = 1000

    def adds(grad):
        def prepare():
            a, b = torch.ones(1, requires_grad=grad), torch.ones(1)

            def body():
                for _ in range(many):
                    a + b
            return body
        return prepare
    # Compared with LibTorch from C++ where that could be built: Python adds its own cost.
    subjects["dispatch/add_1"] = (adds(False), many)
    subjects["dispatch/add_1_grad"] = (adds(True), many)

    @subject("dispatch/add_1_backward", many)
    def _():
        a = torch.ones(1, requires_grad=True)

        def body():
            for _ in range(many):
                (a + a).backward()
        return body

    @subject("dispatch/empty_256x256", many)
    def _():
        def body():
            for _ in range(many):
                torch.empty(256, 256)
        return body

    @subject("dispatch/queue_10000", 10000)
    def _():
        start = torch.zeros(8)

        def body():
            x = start
            for _ in range(10000):
                x = x + 1
        return body

    @subject("dispatch/view", many)
    def _():
        x = torch.zeros(64, 64)

        def body():
            for _ in range(many):
                x.transpose(0, 1)
        return body


def kernels():
    big = (10_000_000,)
    unary("pointwise/x*2+1", big, lambda x: x * 2 + 1)
    for name in ("relu", "exp", "log", "sigmoid", "tanh", "sqrt"):
        unary("pointwise/" + name, big, getattr(torch, name))
    unary("pointwise/gelu", big, F.gelu)
    binary("pointwise/add", big, big, torch.add)
    binary("pointwise/mul", big, big, torch.mul)
    binary("pointwise/div", big, big, torch.div)
    binary("pointwise/add_row", (4096, 1024), (1024,), torch.add)
    binary("pointwise/add_column", (4096, 1024), (4096, 1), torch.add)
    binary("pointwise/add_transposed", (2048, 2048), (2048, 2048), lambda a, b: a + b.t())
    unary("pointwise/add_1000", (1000,), lambda x: x + x)
    unary("copy/contiguous_transposed", (2048, 2048), lambda x: x.t().contiguous())
    unary("copy/clone", big, torch.clone)
    unary("copy/to_f64", big, lambda x: x.double())
    unary("random/dropout", big, lambda x: F.dropout(x, 0.5, True))
    subjects["random/rand"] = (lambda: lambda: torch.rand(big), 1)
    subjects["random/randn"] = (lambda: lambda: torch.randn(big), 1)

    square = (3200, 3200)
    unary("reduce/sum", square, torch.sum)
    unary("reduce/sum_rows", square, lambda x: x.sum(1))
    unary("reduce/sum_columns", square, lambda x: x.sum(0))
    unary("reduce/mean_rows", square, lambda x: x.mean(1))
    unary("reduce/amax_rows", square, lambda x: x.amax(1))
    unary("reduce/argmax_rows", square, lambda x: x.argmax(1))
    unary("reduce/var_rows", square, lambda x: x.var(1))
    unary("reduce/logsumexp_rows", square, lambda x: x.logsumexp(1))
    unary("reduce/logsumexp_columns", square, lambda x: x.logsumexp(0))

    for n in (64, 128, 256, 512, 1024):
        binary(f"matmul/{n}", (n, n), (n, n), torch.matmul)
    binary("matmul/512_transposed", (512, 512), (512, 512), lambda a, b: a @ b.t())
    binary("matmul/batched_32x128", (32, 128, 128), (32, 128, 128), torch.matmul)
    binary("matmul/vector_1024", (1024, 1024), (1024,), torch.matmul)
    binary("matmul/linear_256x784x256", (256, 784), (256, 784), F.linear)

    for name, x, w, padding in (("lenet1", (256, 1, 28, 28), (6, 1, 5, 5), 2), ("lenet2", (256, 6, 14, 14), (16, 6, 5, 5), 0),
                                ("64x56_3x3", (8, 64, 56, 56), (64, 64, 3, 3), 1),
                                ("256x14_1x1", (16, 256, 14, 14), (256, 256, 1, 1), 0)):
        def conv(x, w, padding=padding):
            return F.conv2d(x, w, padding=padding)
        binary(f"conv/{name}", x, w, conv)
        backward(f"conv/{name}_backward", (x, w), conv)
    maps = (256, 16, 28, 28)
    for name, f in (("max", lambda x: F.max_pool2d(x, 2)), ("avg", lambda x: F.avg_pool2d(x, 2))):
        unary("pool/" + name, maps, f)
        backward(f"pool/{name}_backward", (maps,), f)

    rows = (4096, 1024)
    unary("softmax/softmax", rows, lambda x: x.softmax(1))
    unary("softmax/log_softmax", rows, lambda x: x.log_softmax(1))
    unary("softmax/columns", rows, lambda x: x.softmax(0))
    backward("softmax/backward", (rows,), lambda x: x.softmax(1).square())
    for n, c in ((256, 10), (4096, 1024)):
        def prepare(n=n, c=c):
            x, y = torch.rand(n, c, requires_grad=True), torch.randint(0, c, (n,))

            def body():
                F.cross_entropy(x, y).backward()
                x.grad = None
            return body
        subjects[f"loss/cross_entropy_{n}x{c}"] = (prepare, 1)

    @subject("norm/layer_norm")
    def _():
        x, w, b = torch.rand(4096, 768), torch.ones(768), torch.zeros(768)
        return lambda: F.layer_norm(x, (768,), w, b)

    @subject("norm/batch_norm")
    def _():
        x, w, b, mean, var = torch.rand(32, 64, 28, 28), torch.ones(64), torch.zeros(64), torch.zeros(64), torch.ones(64)
        return lambda: F.batch_norm(x, mean, var, w, b, True)
    backward("norm/layer_norm_backward", ((4096, 768),), lambda x: F.layer_norm(x, (768,)).square())

    @subject("index/embedding")
    def _():
        table, indices = torch.rand(32000, 256), torch.randint(0, 32000, (4096,))
        return lambda: F.embedding(indices, table)

    @subject("index/embedding_backward")
    def _():
        table, indices = torch.rand(32000, 256, requires_grad=True), torch.randint(0, 32000, (4096,))

        def body():
            F.embedding(indices, table).sum().backward()
            table.grad = None
        return body


def lenet():
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Sigmoid(), nn.AvgPool2d(2, 2), nn.Conv2d(6, 16, 5), nn.Sigmoid(),
                         nn.AvgPool2d(2, 2), nn.Flatten(), nn.Linear(400, 120), nn.Sigmoid(), nn.Linear(120, 84), nn.Sigmoid(),
                         nn.Linear(84, 10))


def training():
    nn = torch.nn

    def step(make, shape, optimizer, **options):
        def prepare():
            net = make()
            opt = optimizer(net.parameters(), **options)
            x, y = torch.rand(shape), torch.randint(0, 10, (shape[0],))

            def body():
                opt.zero_grad()
                F.cross_entropy(net(x), y).backward()
                opt.step()
            return body
        return prepare

    def mlp():
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    images = (256, 1, 28, 28)
    for name, make in (("lenet", lenet), ("mlp", mlp)):
        subjects[f"training/{name}_64"] = (step(make, (64, 1, 28, 28), torch.optim.SGD, lr=0.1), 1)
    subjects["training/lenet_256"] = (step(lenet, images, torch.optim.SGD, lr=0.1), 1)
    subjects["training/lenet_256_adam"] = (step(lenet, images, torch.optim.Adam, lr=1e-3), 1)
    subjects["training/mlp_256"] = (step(mlp, images, torch.optim.SGD, lr=0.1), 1)

    @subject("training/mlp_forward_1", 100)
    def _():
        net = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 2))
        x = torch.rand(1, 512)

        def body():
            with torch.no_grad():
                for _ in range(100):
                    net(x)
        return body

    for name, make, options in (("sgd", torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}), ("adam", torch.optim.Adam, {"lr": 1e-3})):
        def prepare(make=make, options=options):
            parameters = [torch.rand(512, 1024, requires_grad=True) for _ in range(20)]
            for p in parameters:
                p.grad = torch.rand(512, 1024)
            opt = make(parameters, **options)
            return opt.step
        subjects[f"optimizer/{name}_10M"] = (prepare, 1)


def checkpoint():
    weights = (20, 1280, 1024)

    def state():
        return {f"layer{i}.weight": torch.rand(weights[1:]) for i in range(weights[0])}

    @subject("checkpoint/save_100MB")
    def _():
        values, path = state(), os.path.join(tempfile.mkdtemp(), "torch.pt")

        def body():
            with open(path, "wb") as file:
                torch.save(values, file)
                file.flush()
                os.fsync(file.fileno())
        return body

    @subject("checkpoint/load_100MB")
    def _():
        path = os.path.join(tempfile.mkdtemp(), "torch.pt")
        torch.save(state(), path)
        return lambda: torch.load(path)


def measure(prepare, items, seconds):
    body = prepare()
    for _ in range(3):
        body()
    runs, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds or runs < 3:
        body()
        runs += 1
    return elapsed / runs / items


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--filter", default=".")
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    for register in (dispatch, kernels, training, checkpoint):
        register()
    subjects.update(torch_operators.register())
    subjects.update(torch_models.register())
    print(json.dumps({name: measure(prepare, items, options.seconds)
                      for name, (prepare, items) in subjects.items() if re.search(options.filter, name)}))


main()
