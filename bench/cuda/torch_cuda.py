"""The subjects of cuda_bench in PyTorch, eager and, for the training step, as a CUDA graph: the same names, inputs and precisions. Prints
{name: seconds} as JSON, a line for each subject."""
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


def values(shape, dtype=torch.float32):
    """In [-0.5, 0.5), those of cuda_bench's function of this name."""
    size = torch.Size((shape,) if isinstance(shape, int) else shape)
    x = torch.arange(size.numel(), device=gpu, dtype=torch.float64) * 0.6180339887498949
    return (x - torch.floor(x) - 0.5).to(dtype).reshape(size)


def precise(precision):
    """Products and convolutions of f32 in TF32, or in f32."""
    tf32 = precision == "tf32"
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


def queued():
    a, b = values(1), values(1)
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


def lenet_step(precision):
    precise(precision)
    net = lenet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)
    x, y = values((256, 1, 28, 28)), torch.arange(256, device=gpu) % 10

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    return step


def captured_step(precision):
    step = lenet_step(precision)
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
    parameters = [values(1 << 20).requires_grad_() for _ in range(64)]
    for p in parameters:
        p.grad = values(1 << 20)
    return make(parameters).step


def subjects():
    big, rows = (64 << 20,), (64 << 10, 1024)
    rand = values

    def product(n, dtype, precision):
        precise(precision)
        a, b = rand((n, n), dtype), rand((n, n), dtype)
        return lambda: a @ b

    def conv(dtype, precision):
        precise(precision)
        x, w = rand((64, 64, 56, 56), dtype), rand((64, 64, 3, 3), dtype)
        return lambda: F.conv2d(x, w, padding=1)

    def on(make, body):
        inputs = make()
        return lambda: body(*inputs)
    two = lambda: (rand(big), rand(big))
    one = lambda: (rand(big),)
    for p in ("tf32", "f32"):
        yield f"training/lenet_256_{p}", lambda p=p: lenet_step(p)
        yield f"training/lenet_256_captured_{p}", lambda p=p: captured_step(p)
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
        for name, dtype, precision in (("bf16", torch.bfloat16, "f32"), ("tf32", torch.float32, "tf32"), ("f32", torch.float32, "f32")):
            yield f"matmul/{n}_{name}", lambda n=n, d=dtype, p=precision: product(n, d, p)
    for p in ("tf32", "f32"):
        yield f"conv/64x56x56_{p}", lambda p=p: conv(torch.float32, p)
    yield "conv/64x56x56_bf16", lambda: conv(torch.bfloat16, "f32")


def main():
    if not torch.cuda.is_available():
        print("torch_cuda: PyTorch finds no CUDA device", file=sys.stderr)
        return 1
    precise("f32")
    print(json.dumps({"dispatch/queued_add": queued()}), flush=True)
    for name, prepare in subjects():
        try:
            with torch.inference_mode(mode=not name.startswith(("training/", "optimizer/"))):
                body = prepare()
                print(json.dumps({name: timed(body)}), flush=True)
        except RuntimeError as e:
            print(f"torch_cuda: {name}: {e}", file=sys.stderr)
        body = None
        torch.cuda.empty_cache()
    return 0


sys.exit(main())
