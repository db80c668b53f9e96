"""The subjects of cuda_bench in PyTorch, eager and, for the training step, as a CUDA graph. Prints {name: seconds} as JSON."""
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

gpu = torch.device("cuda:0")
repeats = 20


def timed(body, tries=7):
    """Median seconds of one run of `body`, `repeats` of them between two waits."""
    for _ in range(3):
        body()
    torch.cuda.synchronize()
    times = []
    for _ in range(tries):
        start = time.perf_counter()
        for _ in range(repeats):
            body()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / repeats)
    return sorted(times)[len(times) // 2]


def queued():
    a, b = torch.rand(1, device=gpu), torch.rand(1, device=gpu)
    times = []
    for _ in range(50):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            a + b
        times.append((time.perf_counter() - start) / 200)
    return sorted(times)[len(times) // 2]


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Sigmoid(), nn.AvgPool2d(2, 2), nn.Conv2d(6, 16, 5), nn.Sigmoid(),
                         nn.AvgPool2d(2, 2), nn.Flatten(), nn.Linear(400, 120), nn.Sigmoid(), nn.Linear(120, 84), nn.Sigmoid(),
                         nn.Linear(84, 10)).to(gpu)


def lenet_step():
    net = lenet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)
    x, y = torch.rand(256, 1, 28, 28, device=gpu), torch.randint(0, 10, (256,), device=gpu)

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    return step


def captured_step():
    step = lenet_step()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def optimizer_step(make):
    parameters = [torch.rand(1 << 20, device=gpu, requires_grad=True) for _ in range(64)]
    for p in parameters:
        p.grad = torch.rand(1 << 20, device=gpu)
    return make(parameters).step


def subjects():
    big, rows = (64 << 20,), (64 << 10, 1024)
    rand = lambda shape, dtype=torch.float32: torch.rand(shape, device=gpu, dtype=dtype)

    def product(n, dtype, precision):
        torch.set_float32_matmul_precision(precision)
        a, b = rand((n, n), dtype), rand((n, n), dtype)
        return lambda: a @ b

    def conv(dtype):
        torch.backends.cudnn.allow_tf32 = False
        x, w = rand((64, 64, 56, 56), dtype), rand((64, 64, 3, 3), dtype)
        return lambda: F.conv2d(x, w, padding=1)

    def on(make, body):
        inputs = make()
        return lambda: body(*inputs)
    two = lambda: (rand(big), rand(big))
    one = lambda: (rand(big),)
    yield "training/lenet_256", lenet_step
    yield "training/lenet_256_captured", captured_step
    yield "pointwise/add", lambda: on(two, lambda a, b: a + b)
    yield "pointwise/x*2+1", lambda: on(one, lambda a: a * 2 + 1)
    yield "pointwise/gelu", lambda: on(one, F.gelu)
    yield "pointwise/add_row", lambda: on(lambda: (rand(rows), rand(1024)), lambda a, b: a + b)
    yield "copy/clone", lambda: on(one, torch.clone)
    yield "copy/transposed", lambda: on(lambda: (rand((8192, 8192)),), lambda a: a.t().contiguous())
    yield "reduce/sum", lambda: on(one, torch.sum)
    yield "reduce/sum_rows", lambda: on(lambda: (rand(rows),), lambda a: a.sum(1))
    yield "reduce/sum_columns", lambda: on(lambda: (rand(rows),), lambda a: a.sum(0))
    yield "softmax/rows_1024", lambda: on(lambda: (rand(rows),), lambda a: F.softmax(a, 1))
    yield "softmax/rows_32768", lambda: on(lambda: (rand((2048, 32768)),), lambda a: F.softmax(a, 1))
    yield "norm/layer_norm", lambda: on(lambda: (rand(rows), rand(1024), rand(1024)), lambda a, w, b: F.layer_norm(a, (1024,), w, b))
    yield "random/dropout", lambda: on(one, F.dropout)
    yield "optimizer/sgd_momentum", lambda: optimizer_step(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True))
    yield "optimizer/adam", lambda: optimizer_step(lambda p: torch.optim.Adam(p, lr=1e-3, fused=True))
    for n in (4096, 8192):
        for name, dtype, precision in (("bf16", torch.bfloat16, "highest"), ("tf32", torch.float32, "high"), ("f32", torch.float32, "highest")):
            yield f"matmul/{n}_{name}", lambda n=n, d=dtype, p=precision: product(n, d, p)
    yield "conv/64x56x56_f32", lambda: conv(torch.float32)
    yield "conv/64x56x56_bf16", lambda: conv(torch.bfloat16)


def main():
    if not torch.cuda.is_available():
        print("torch_cuda: PyTorch finds no CUDA device", file=sys.stderr)
        return
    times = {"dispatch/queued_add": queued()}
    for name, prepare in subjects():
        body = prepare()
        with torch.inference_mode(mode=not name.startswith(("training/", "optimizer/"))):
            times[name] = timed(body)
        del body
        torch.cuda.empty_cache()
    print(json.dumps(times))


main()
