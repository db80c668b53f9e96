"""The subjects of operators_bench.cpp in PyTorch, line by line."""
import torch
import torch.nn.functional as F

subjects = {}


def forward(name, shapes, dtype, repeat, f):
    def prepare():
        x = [torch.rand(shape).to(dtype) for shape in shapes]

        def body():
            for _ in range(repeat):
                f(*x)
        return body
    subjects[name] = (prepare, repeat)


def backward(name, shapes, dtype, repeat, f):
    def prepare():
        x = [torch.rand(shape).to(dtype).requires_grad_() for shape in shapes]

        def body():
            for _ in range(repeat):
                for t in x:
                    t.grad = None
                f(*x).sum().backward()
        return body
    subjects[name] = (prepare, repeat)


def add(name, shapes, f, also_backward=False, bf16=False, also_forward=True, repeat=1):
    """The subjects name, name_backward, name_bf16 and name_bf16_backward."""
    if also_forward:
        forward(name, shapes, torch.float32, repeat, f)
    if also_backward:
        backward(name + "_backward", shapes, torch.float32, repeat, f)
    if bf16:
        forward(name + "_bf16", shapes, torch.bfloat16, repeat, f)
        if also_backward:
            backward(name + "_bf16_backward", shapes, torch.bfloat16, repeat, f)


small, cache, memory = ("_1k", 32, 100), ("_100k", 320, 10), ("_10M", 3200, 1)


def pointwise(size, also_forward):
    suffix, side, repeat = size
    x = (side, side)

    def unary(name, f, also_backward=False, bf16=False):
        add(f"pointwise/{name}{suffix}", (x,), f, also_backward, bf16, also_forward, repeat)

    def binary(name, y, f, also_backward=False, bf16=False):
        add(f"pointwise/{name}{suffix}", (x, y), f, also_backward, bf16, also_forward, repeat)
    unary("exp", torch.exp, False, True)
    unary("gelu", F.gelu, True, True)
    unary("relu", torch.relu, True)
    unary("sigmoid", torch.sigmoid, True)
    unary("silu", F.silu, True)
    binary("add", x, torch.add, False, True)
    binary("mul", x, torch.mul, True)
    binary("add_row", (side,), torch.add, True)
    binary("mul_column", (side, 1), torch.mul, True)
    if not also_forward:
        return
    unary("tanh", torch.tanh)
    unary("log", torch.log)
    unary("clamp", lambda a: a.clamp(0.2, 0.8))
    binary("where", x, lambda a, b: torch.where(a > 0.5, a, b))


def more_pointwise():
    add("pointwise/gelu_tanh_1M", ((1024, 1024),), lambda x: F.gelu(x, approximate="tanh"), True, True)
    add("pointwise/add_inplace_10M", ((3200, 3200),) * 2, lambda x, y: x.add_(y))
    add("pointwise/clamp_inplace_10M", ((3200, 3200),), lambda x: x.clamp_(0.2, 0.8))
    add("pointwise/relu_inplace_10M", ((3200, 3200),), lambda x: x.relu_())


def reductions(size, also_forward):
    suffix, side, repeat = size

    def unary(name, f, also_backward=False, bf16=False):
        add(f"reduce/{name}{suffix}", ((side, side),), f, also_backward, bf16, also_forward, repeat)
    unary("sum_rows", lambda x: x.sum(1), False, True)
    unary("logsumexp_rows", lambda x: x.logsumexp(1), True)
    unary("var_rows", lambda x: x.var(1), True)
    unary("cumsum", lambda x: x.cumsum(1), True)
    if not also_forward:
        return
    unary("sum", torch.sum)
    unary("sum_columns", lambda x: x.sum(0))
    unary("amax_rows", lambda x: x.amax(1))
    unary("argmax_rows", lambda x: x.argmax(1))
    unary("softmax", lambda x: x.softmax(1), True)
    unary("log_softmax", lambda x: x.log_softmax(1), True)


def products():
    for n in (16, 2048):
        add(f"matmul/{n}", ((n, n), (n, n)), torch.matmul, repeat=100 if n == 16 else 1)
    for n in (64, 256, 1024):
        add(f"matmul/{n}", ((n, n), (n, n)), torch.matmul, True, True, also_forward=False)
    add("matmul/linear_32x512x512", ((32, 512), (512, 512), (512,)), F.linear, True)
    add("matmul/batched_96x64x32", ((96, 64, 32), (96, 32, 64)), torch.matmul, True)


def convolutions():
    for name, c, out, side, kernel, stride in (("resnet_3x64", 3, 64, 32, 3, 1), ("resnet_64", 64, 64, 32, 3, 1),
                                               ("resnet_64x128", 64, 128, 32, 3, 2), ("resnet_128", 128, 128, 16, 3, 1),
                                               ("resnet_256", 256, 256, 8, 3, 1), ("resnet_512", 512, 512, 4, 3, 1),
                                               ("resnet_shortcut", 64, 128, 32, 1, 2)):
        add(f"conv/{name}", ((8, c, side, side), (out, c, kernel, kernel)),
            lambda x, w, stride=stride, padding=kernel // 2: F.conv2d(x, w, None, stride, padding), True)
    add("conv/depthwise", ((8, 64, 32, 32), (64, 1, 3, 3)), lambda x, w: F.conv2d(x, w, padding=1, groups=64), True)
    add("conv/transpose", ((8, 64, 16, 16), (64, 32, 4, 4)), lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), True)
    add("conv/1d", ((16, 64, 256), (64, 64, 3)), lambda x, w: F.conv1d(x, w, padding=1), True)


def layers():
    add("norm/layer_norm_32x128", ((32, 128), (128,), (128,)), lambda x, w, b: F.layer_norm(x, (128,), w, b), True, repeat=10)
    add("norm/layer_norm_4096x768", ((4096, 768), (768,), (768,)), lambda x, w, b: F.layer_norm(x, (768,), w, b), True, True)
    add("norm/group_norm", ((16, 64, 32, 32), (64,), (64,)), lambda x, w, b: F.group_norm(x, 8, w, b), True, True)
    add("norm/rms_norm", ((4096, 768), (768,)), lambda x, w: F.rms_norm(x, (768,), w), True, True)
    add("norm/batch_norm_grad", ((32, 64, 16, 16), (64,), (64,)), lambda x, w, b: F.batch_norm(x, None, None, w, b, True), True, True,
        also_forward=False)
    add("pool/max_3x3", ((8, 64, 56, 56),), lambda x: F.max_pool2d(x, 3, 2, 1), True)
    add("pool/adaptive", ((32, 512, 7, 7),), lambda x: F.adaptive_avg_pool2d(x, 1), True)
    add("pool/bilinear", ((8, 32, 32, 32),), lambda x: F.interpolate(x, (64, 64), mode="bilinear"), True)
    for n in (64, 512):
        add(f"attention/causal_{n}", ((4, 8, n, 64),) * 3, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            True, n == 512)
    add("loss/mse", ((1024, 1024),) * 2, F.mse_loss, True)
    add("loss/smooth_l1", ((1024, 1024),) * 2, F.smooth_l1_loss, True, True)
    add("loss/huber", ((1024, 1024),) * 2, F.huber_loss, True, True)
    add("loss/mse_none", ((1024, 1024),) * 2, lambda x, y: F.mse_loss(x, y, reduction="none"), True)
    add("loss/smooth_l1_none", ((1024, 1024),) * 2, lambda x, y: F.smooth_l1_loss(x, y, reduction="none"), True)
    add("loss/bce_with_logits", ((1024, 1024),) * 2, F.binary_cross_entropy_with_logits, True)


def recurrent(name, layer):
    def prepare(also_backward):
        net, x = layer(128, 128, num_layers=2), torch.rand(64, 32, 128)

        def body():
            net.zero_grad()
            y = net(x)[0]
            if also_backward:
                y.sum().backward()
        return body
    subjects[f"recurrent/{name}"] = (lambda: prepare(False), 1)
    subjects[f"recurrent/{name}_step"] = (lambda: prepare(True), 1)


def moves():
    rows, everywhere = torch.randint(0, 4096, (4096,)), torch.randint(0, 1024, (4096, 1024))
    x = (4096, 1024)
    add("index/index_select", (x,), lambda t: t.index_select(0, rows), True)
    add("index/gather", (x,), lambda t: t.gather(1, everywhere), True)
    add("index/scatter_add", (x, x), lambda t, s: t.scatter_add(1, everywhere, s))
    add("index/topk", (x,), lambda t: t.topk(10, 1).values)
    add("index/sort", ((1024, 1024),), lambda t: t.sort(1).values)
    add("index/cat", (x, x), lambda a, b: torch.cat((a, b), 1), True)
    add("index/pad", ((32, 64, 32, 32),), lambda t: F.pad(t, (1, 1, 1, 1)), True)
    add("index/roll", (x,), lambda t: t.roll(3, 1))
    add("index/flip", (x,), lambda t: t.flip(1))
    add("index/tril", ((2048, 2048),), torch.tril)
    add("index/permute", ((32, 64, 32, 32),), lambda t: t.permute(0, 2, 3, 1).contiguous())


def register():
    for size in (small, cache):
        pointwise(size, True)
        reductions(size, True)
    pointwise(memory, False)
    more_pointwise()
    reductions(memory, False)
    products()
    convolutions()
    layers()
    for name, layer in (("rnn", torch.nn.RNN), ("gru", torch.nn.GRU), ("lstm", torch.nn.LSTM)):
        recurrent(name, layer)
    moves()
    return subjects
