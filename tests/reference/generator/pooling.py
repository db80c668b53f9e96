"""Reference cases of pooling: odd sizes, borders, dilations."""
import numpy as np
import torch
import torch.nn.functional as F

from .operators import operator

# kernel_size, stride, padding, dilation, ceil_mode: for each of one, two and three dimensions.
WINDOWS = {
    1: [(3, 2, 1, 1, True), (2, 3, 0, 3, False), (4, 3, 2, 1, True), (5, 1, 2, 2, False)],
    2: [([3, 2], [2, 3], [1, 0], [1, 2], True), ([2, 3], [3, 2], [1, 1], [2, 1], False),
        ([4, 5], [3, 2], [2, 2], [1, 1], True)],
    3: [([2, 3, 2], [1, 2, 3], [1, 1, 0], [2, 1, 1], True),
        ([3, 2, 2], [2, 2, 1], [0, 1, 1], [1, 1, 2], False),
        ([1, 2, 3], [1, 3, 2], [0, 0, 1], [1, 2, 1], True), (2, 3, 1, 1, True)],
}
SHAPES = {1: (2, 3, 11), 2: (2, 2, 9, 7), 3: (1, 2, 5, 7, 6)}
SIZES = {1: [3, 1, 13], 2: [[3, 4], [1, 1], [7, 10]], 3: [[3, 4, 2], [1, 1, 1], [7, 3, 6]]}


def steps(kit, *shape):
    """Whole numbers, many of them equal."""
    return np.asarray(kit.rng.randint(-3, 4, shape), np.float32)


def max_pool(name, dims, indices):
    @operator("pooling", name)
    def cases(kit):
        pool = getattr(F, name)
        shape = SHAPES[dims]
        for i, (kernel, stride, padding, dilation, ceil_mode) in enumerate(WINDOWS[dims]):
            args = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation,
                    "ceil_mode": ceil_mode}
            x = steps(kit, *shape) if i % 2 == 0 else kit.normal(*shape[1:])
            kit.case(lambda t: pool(t, **args), [x], args)
        kit.case(lambda t: pool(t, kernel_size=2), [kit.normal(*shape)], {"kernel_size": 2})


def avg_pool(name, dims):
    @operator("pooling", name)
    def cases(kit):
        pool = getattr(F, name)
        shape = SHAPES[dims]
        for kernel, stride, padding, _, ceil_mode in WINDOWS[dims]:
            for count in (True, False):
                args = {"kernel_size": kernel, "stride": stride, "padding": padding,
                        "ceil_mode": ceil_mode, "count_include_pad": count}
                kit.case(lambda t: pool(t, **args), [kit.normal(*shape)], args)
            if dims > 1:
                args = {**args, "divisor_override": 5}
                kit.case(lambda t: pool(t, **args), [kit.normal(*shape[1:])], args)


def lp_pool(name, dims):
    @operator("pooling", name)
    def cases(kit):
        pool = getattr(F, name)
        for p, ceil_mode in ((2, False), (3, True), (1.5, True), (1, False)):
            kernel, stride = WINDOWS[dims][0][:2]
            args = {"norm_type": p, "kernel_size": kernel, "stride": stride, "ceil_mode": ceil_mode}
            kit.case(lambda t: pool(t, **args), [kit.uniform(0.2, 2, *SHAPES[dims])], args)


def adaptive_pool(name, dims):
    @operator("pooling", name)
    def cases(kit):
        pool = getattr(F, name)
        for i, size in enumerate(SIZES[dims]):
            shape = SHAPES[dims] if i % 2 == 0 else SHAPES[dims][1:]
            x = steps(kit, *shape) if "max" in name else kit.normal(*shape)
            kit.case(lambda t: pool(t, size), [x], {"output_size": size})


def max_unpool(name, dims):
    @operator("pooling", name)
    def cases(kit):
        pool, unpool = getattr(F, f"max_pool{dims}d_with_indices"), getattr(F, name)
        shape = SHAPES[dims]
        for kernel, stride, padding in ((2, None, 0), (3, None, 1), (2, 3, 0)):
            x = torch.from_numpy(kit.normal(*shape))
            values, indices = pool(x, kernel, stride, padding)
            args = {"kernel_size": kernel, "padding": padding, "output_size": list(shape[2:])}
            if stride:
                args["stride"] = stride
            if padding:  # the size that follows from the others
                del args["output_size"]
                indices = torch.arange(values[0, 0].numel()).reshape(values.shape[2:]).expand(values.shape)
            kit.case(lambda t, i: unpool(t, i, **args), [values.numpy(), indices.numpy()], args)


for d in (1, 2, 3):
    if d != 2:
        max_pool(f"max_pool{d}d", d, False)
    max_pool(f"max_pool{d}d_with_indices", d, True)
    avg_pool(f"avg_pool{d}d", d)
    lp_pool(f"lp_pool{d}d", d)
    max_unpool(f"max_unpool{d}d", d)
    if d != 2:
        adaptive_pool(f"adaptive_avg_pool{d}d", d)
    adaptive_pool(f"adaptive_max_pool{d}d", d)
    adaptive_pool(f"adaptive_max_pool{d}d_with_indices", d)
