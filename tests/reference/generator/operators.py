"""Reference cases of operators that were added one by one.

A function a family's operator, marked with its file and name. Each draws its inputs from a generator
of its own, so that adding an operator, or a case to one, changes no other operator's cases:

    @operator("reduction", "logsumexp")
    def logsumexp(kit):
        kit.case(lambda x: torch.logsumexp(x, [1]), [kit.normal(3, 4)], {"dim": [1]})
"""
import numpy as np
import torch

from .kit import File, Kit

OPERATORS = {}  # file: [(operator, function)]


def operator(file, name):
    def register(function):
        OPERATORS.setdefault(file, []).append((name, function))
        return function

    return register


@operator("reduction", "logsumexp")
def logsumexp(kit):
    def case(x, dim, keepdim):
        kit.case(lambda t: torch.logsumexp(t, dim, keepdim), [x], {"dim": dim, "keepdim": keepdim})

    case(kit.normal(4, 5), [1], False)
    case(kit.normal(4, 5), [0], True)
    case(kit.normal(2, 3, 4), [0, 2], False)
    case(kit.normal(2, 3, 4), [0, 1, 2], True)
    case(kit.normal(7, 1), [-1], False)  # a single element is itself
    case(kit.normal(3, 131) * 50, [1], False)  # exp alone would overflow
    x = kit.normal(4, 5)
    x[0] = -float("inf")  # nothing: -inf, whose gradient is NaN
    x[1, 2] = -float("inf")
    x[2, 4] = float("inf")
    x[3, 0] = float("nan")
    case(x, [1], False)


# ---- products


@operator("products", "inner")
def inner(kit):
    kit.case(torch.inner, [kit.normal(2, 3), kit.normal(4, 3)])
    kit.case(torch.inner, [kit.normal(3), kit.normal(2, 4, 3)])
    kit.case(torch.inner, [kit.normal(), kit.normal(2, 3)])


@operator("products", "addmv")
def addmv(kit):
    def case(x, a, b, **scale):
        kit.case(lambda x, a, b: torch.addmv(x, a, b, **scale), [x, a, b], scale)

    case(kit.normal(3), kit.normal(3, 4), kit.normal(4))
    case(kit.normal(1), kit.normal(3, 4), kit.normal(4), beta=0.5, alpha=-2.0)


@operator("products", "addbmm")
def addbmm(kit):
    def case(x, a, b, **scale):
        kit.case(lambda x, a, b: torch.addbmm(x, a, b, **scale), [x, a, b], scale)

    case(kit.normal(3, 5), kit.normal(2, 3, 4), kit.normal(2, 4, 5))
    case(kit.normal(5), kit.normal(2, 3, 4), kit.normal(2, 4, 5), beta=0.5, alpha=-2.0)


@operator("products", "vander")
def vander(kit):
    def case(n, args, *exponents):  # torch.vander has no gradient for more than two columns
        kit.case(lambda x: torch.stack([x**e for e in exponents], 1), [kit.normal(n)], args)

    case(4, {}, 3, 2, 1, 0)
    case(4, {"N": 3}, 2, 1, 0)
    case(3, {"N": 5, "increasing": True}, 0, 1, 2, 3, 4)


@operator("products", "matrix_power")
def matrix_power(kit):
    for n, shape in [(0, (3, 3)), (1, (2, 2)), (2, (3, 3)), (7, (2, 3, 3))]:
        kit.case(lambda x: torch.linalg.matrix_power(x, n), [kit.normal(*shape)], {"n": n})
    for n, shape in [(-1, (3, 3)), (-3, (2, 4, 4)), (-2, (1, 1))]:  # far from singular
        regular = kit.normal(*shape) + 5 * np.eye(shape[-1], dtype=np.float32)
        kit.case(lambda x: torch.linalg.matrix_power(x, n), [regular], {"n": n})


@operator("products", "cov")
def cov(kit):
    kit.case(torch.cov, [kit.normal(3, 5)])
    kit.case(torch.cov, [kit.normal(5)])
    kit.case(lambda x: torch.cov(x, correction=0), [kit.normal(3, 5)], {"correction": 0})
    counts = kit.integers(4, 5) + 1
    importance = kit.uniform(0.2, 2, 5)
    kit.case(lambda x, f: torch.cov(x, fweights=f), [kit.normal(3, 5), counts])
    kit.case(lambda x, f, a: torch.cov(x, fweights=f, aweights=a),
             [kit.normal(3, 5), counts, importance], constant=(2,))


@operator("products", "corrcoef")
def corrcoef(kit):
    kit.case(torch.corrcoef, [kit.normal(3, 5)])
    kit.case(torch.corrcoef, [kit.normal(2, 9)])


# ---- new tensors: the input stands for dtype and device


@operator("creation", "linspace")
def linspace(kit):
    for start, end, steps in [(-3, 7, 5), (0.5, 0.75, 11), (2, -9, 4), (3, 4, 1), (0, 1, 0)]:
        kit.case(lambda x: torch.linspace(start, end, steps, dtype=torch.float64), [kit.normal(1)],
                 {"start": start, "end": end, "steps": steps}, differentiate=False)


@operator("creation", "logspace")
def logspace(kit):
    for start, end, steps, base in [(-2, 2, 5, 10.0), (0, 8, 9, 2.0), (0.5, 1.5, 4, 3.5)]:
        kit.case(lambda x: torch.logspace(start, end, steps, base, dtype=torch.float64),
                 [kit.normal(1)], {"start": start, "end": end, "steps": steps, "base": base},
                 differentiate=False)


@operator("creation", "eye")
def eye(kit):
    for n, m in [(3, 3), (2, 4), (4, 2), (0, 3)]:
        kit.case(lambda x: torch.eye(n, m, dtype=torch.float64), [kit.normal(1)], {"n": n, "m": m},
                 differentiate=False)


@operator("creation", "tril_indices")
def tril_indices(kit):
    for row, col, offset in [(3, 4, 0), (4, 3, -1), (2, 5, 2), (3, 3, -5)]:
        kit.case(lambda x: torch.tril_indices(row, col, offset), [kit.integers(2, 1)],
                 {"row": row, "col": col, "offset": offset})


@operator("creation", "triu_indices")
def triu_indices(kit):
    for row, col, offset in [(3, 4, 0), (4, 3, -1), (2, 5, 2), (3, 3, 5)]:
        kit.case(lambda x: torch.triu_indices(row, col, offset), [kit.integers(2, 1)],
                 {"row": row, "col": col, "offset": offset})


# ---- convolutions: paddings by a word, inputs without a batch, empty batches, large strides


def convolution_case(kit, function, shapes, args):
    inputs = [kit.normal(*shape) for shape in shapes]
    kit.case(lambda *tensors: function(*tensors, **args), inputs, args,
             names=["input", "weight", "bias"][:len(inputs)], tolerance=(1e-3, 1e-4))


@operator("convolution", "conv1d")
def conv1d(kit):
    for shapes, args in [
        ([(2, 4, 9), (6, 2, 4), (6,)], {"padding": "same", "groups": 2}),
        ([(1, 3, 8), (2, 3, 3)], {"padding": "same", "dilation": 3}),
        ([(2, 3, 8), (4, 3, 3), (4,)], {"padding": "valid", "stride": 2}),
        ([(3, 8), (4, 3, 3), (4,)], {"padding": 2, "dilation": 2}),
        ([(0, 3, 8), (4, 3, 3), (4,)], {"padding": 1}),
        ([(2, 3, 17), (4, 3, 2), (4,)], {"stride": 7}),
        ([(1, 2, 3), (2, 2, 3), (2,)], {"padding": 4, "dilation": 4, "stride": 3}),
    ]:
        convolution_case(kit, torch.nn.functional.conv1d, shapes, args)


@operator("convolution", "conv2d")
def conv2d(kit):
    for shapes, args in [
        ([(2, 4, 5, 6), (6, 2, 4, 3), (6,)], {"padding": "same", "groups": 2}),
        ([(1, 3, 6, 5), (2, 3, 2, 2)], {"padding": "same", "dilation": [3, 1]}),
        ([(2, 3, 6, 5), (4, 3, 3, 2), (4,)], {"padding": "valid", "stride": 2}),
        ([(3, 6, 5), (4, 3, 3, 2), (4,)], {"padding": 1}),
        ([(0, 3, 6, 5), (4, 3, 3, 2), (4,)], {"padding": 1}),
        ([(2, 3, 11, 9), (4, 3, 2, 3), (4,)], {"stride": [5, 4]}),
    ]:
        convolution_case(kit, torch.nn.functional.conv2d, shapes, args)


@operator("convolution", "conv3d")
def conv3d(kit):
    for shapes, args in [
        ([(2, 4, 3, 5, 4), (4, 2, 2, 4, 3), (4,)], {"padding": "same", "groups": 2}),
        ([(1, 2, 4, 3, 5), (2, 2, 2, 1, 2)], {"padding": "same", "dilation": [3, 1, 2]}),
        ([(2, 2, 5, 4, 3), (3, 2, 2, 2, 3), (3,)], {"padding": "valid", "stride": 2}),
        ([(2, 4, 3, 5), (3, 2, 3, 2, 2), (3,)], {"padding": [2, 0, 1]}),
        ([(0, 2, 4, 3, 5), (3, 2, 3, 2, 2), (3,)], {"padding": 1}),
        ([(1, 2, 7, 6, 5), (2, 2, 2, 2, 1), (2,)], {"stride": [4, 3, 2]}),
        ([(1, 1, 2, 3, 2), (2, 1, 3, 1, 2), (2,)],
         {"padding": [4, 0, 1], "dilation": [3, 1, 2], "stride": [2, 1, 1]}),
    ]:
        convolution_case(kit, torch.nn.functional.conv3d, shapes, args)


@operator("convolution", "conv_transpose1d")
def conv_transpose1d(kit):
    for shapes, args in [
        ([(4, 5), (4, 3, 3), (6,)], {"stride": 2, "groups": 2}),
        ([(0, 2, 5), (2, 3, 3), (3,)], {"padding": 1}),
        ([(2, 2, 4), (2, 3, 2), (3,)], {"stride": 5, "output_padding": 4}),
        ([(1, 2, 4), (2, 3, 3)], {"stride": 2, "dilation": 5, "output_padding": 4, "padding": 3}),
    ]:
        convolution_case(kit, torch.nn.functional.conv_transpose1d, shapes, args)


@operator("convolution", "conv_transpose2d")
def conv_transpose2d(kit):
    for shapes, args in [
        ([(2, 4, 3, 4), (4, 3, 3, 2), (6,)],
         {"stride": [2, 3], "padding": [1, 0], "output_padding": [1, 2], "groups": 2}),
        ([(1, 2, 3, 4), (2, 3, 2, 3)], {"dilation": [2, 3], "padding": [1, 2]}),
        ([(4, 3, 4), (4, 3, 3, 3), (3,)], {"stride": 2, "padding": 1, "output_padding": 1}),
        ([(0, 2, 3, 4), (2, 3, 3, 3), (3,)], {"padding": 1}),
        ([(2, 2, 3, 2), (2, 3, 2, 1), (3,)], {"stride": [5, 4], "output_padding": [4, 0]}),
        ([(1, 2, 2, 3), (2, 2, 2, 3), (2,)],
         {"stride": 2, "dilation": [5, 3], "output_padding": [4, 2], "padding": [2, 1]}),
    ]:
        convolution_case(kit, torch.nn.functional.conv_transpose2d, shapes, args)


@operator("convolution", "conv_transpose3d")
def conv_transpose3d(kit):
    for shapes, args in [
        ([(4, 2, 3, 2), (4, 1, 3, 2, 2), (2,)], {"stride": [2, 1, 2], "groups": 2}),
        ([(0, 2, 2, 3, 2), (2, 3, 3, 2, 2), (3,)], {"padding": 1}),
        ([(1, 2, 3, 2, 2), (2, 2, 2, 1, 2)], {"stride": [4, 2, 1], "output_padding": [3, 1, 0]}),
        ([(1, 2, 2, 2, 3), (2, 2, 2, 2, 3), (2,)],
         {"stride": 2, "dilation": [5, 3, 1], "output_padding": [4, 2, 0], "padding": [2, 1, 0]}),
    ]:
        convolution_case(kit, torch.nn.functional.conv_transpose3d, shapes, args)


def write(directory):
    """Writes the file of every family into the directory."""
    from . import loss, matrices, order, pointwise, pooling, resampling  # noqa: F401, register their operators

    for name, members in OPERATORS.items():
        with File(directory, name) as file:
            for op, function in members:
                function(Kit(file, op))
            print(f"{name}: {file.count} cases")
