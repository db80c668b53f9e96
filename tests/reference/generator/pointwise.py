"""Pointwise operators: functions of one, two and three tensors (pointwise.h5)."""
import numpy as np
import torch
import torch.nn.functional as F

from .operators import operator

EDGES = np.array([0.0, -0.0, 1, -1, 0.5, -3, 3, 1e-8, -1e-8, 30, -30, 5.5], np.float32)


def register(name, function, draw, args=({},), names=None, constant=()):
    """Cases of `function(*tensors, **args)`: for each set of arguments the inputs of draw(kit)."""

    @operator("pointwise", name)
    def cases(kit):
        for given in args:
            for inputs in draw(kit):
                kit.case(lambda *t: function(*t, **given), inputs, given, names=names,
                         constant=constant)


def reals(kit):
    return [[kit.normal(4, 5) * 2], [EDGES]]


def drawn(low, high):
    return lambda kit: [[kit.uniform(low, high, 4, 5)], [kit.uniform(low, high, 2, 1, 3)]]


def pairs(low=-3.0, high=3.0):
    return lambda kit: [[kit.uniform(low, high, 4, 5), kit.uniform(low, high, 4, 5)],
                        [kit.uniform(low, high, 2, 1, 3), kit.uniform(low, high, 4, 1)]]


def whole_pairs(low, high):
    def draw(kit):
        a, b = (kit.rng.randint(low, high, (5, 6)).astype(np.int64) for _ in range(2))
        return [[a, b], [a[:1], b[:, :1]]]

    return draw


def triples(kit):
    return [[kit.normal(4, 5), kit.uniform(0.5, 3, 4, 5), kit.uniform(0.5, 3, 4, 5)],
            [kit.normal(2, 1, 3), kit.uniform(0.5, 3, 4, 1), kit.uniform(0.5, 3, 3)]]


for function in (torch.atan, torch.sinh, torch.asinh, torch.erfc, torch.trunc, torch.frac,
                 torch.cosh, torch.exp2):
    register(function.__name__, function, reals)
# Near 0, PyTorch's gradient is what is left of two large numbers.
register("sinc", torch.sinc, lambda kit: [[kit.normal(4, 5)], [np.array([0, 0.1, 1], np.float32)]])
for function, low, high in ((torch.tan, -1.4, 1.4), (torch.asin, -0.97, 0.97),
                            (torch.acos, -0.97, 0.97), (torch.atanh, -0.97, 0.97),
                            (torch.erfinv, -0.999, 0.999), (torch.acosh, 1.01, 9),
                            (torch.log2, 0.01, 9), (torch.log10, 0.01, 9),
                            (torch.lgamma, 0.1, 30), (torch.digamma, 0.1, 30)):
    register(function.__name__, function, drawn(low, high))
register("expm1", torch.expm1, lambda kit: [[EDGES * 1e-3]])
register("log1p", torch.log1p, lambda kit: [[np.abs(EDGES) * 1e-3]])
register("polygamma", lambda x, n: torch.polygamma(n, x), drawn(0.3, 9),
         ({"n": 0}, {"n": 1}, {"n": 2}, {"n": 3}))
register("logit", torch.logit, drawn(0.05, 0.95), ({}, {"eps": 0.2}, {"eps": 1e-6}))
register("logit", torch.logit, lambda kit: [[np.array([-0.5, 0, 0.1, 0.9, 1, 1.5], np.float32)]],
         ({"eps": 0.1},))
for function in (torch.atan2, torch.hypot, torch.copysign, torch.logaddexp):
    register(function.__name__, function, pairs())
register("xlogy", torch.xlogy, pairs(0.1, 3))
register("xlogy", torch.xlogy,
         lambda kit: [[np.array([0, 0, 2, 2], np.float32), np.array([1, 3, 1, 0.5], np.float32)]])
def floor_divide(a, b):
    return torch.floor_divide(a.detach(), b.detach())  # it has no gradient in PyTorch


for function in (torch.fmod, torch.remainder, floor_divide):
    register(function.__name__, function, pairs())
    register(function.__name__, function, whole_pairs(1, 9))
    register(function.__name__, function, whole_pairs(-9, 0))
for function in (torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor):
    register(function.__name__, function, whole_pairs(-9, 9))
    register(function.__name__, function, lambda kit: [[kit.flags(4, 5), kit.flags(4, 5)]])
for function in (torch.bitwise_left_shift, torch.bitwise_right_shift):
    register(function.__name__, function, whole_pairs(0, 64))
    register(function.__name__, function, lambda kit: [
        [kit.rng.randint(-99, 99, (4, 5)).astype(np.int64), kit.integers(9, 4, 5)]])
register("bitwise_not", torch.bitwise_not, lambda kit: [[kit.integers(9, 4, 5)], [kit.flags(6)]])
register("heaviside", lambda a, b: torch.heaviside(a.detach(), b.detach()),
         lambda kit: [[EDGES, kit.normal(12)]])
register("lerp", lambda a, b, w: torch.lerp(a, b, w), triples)
register("addcmul", torch.addcmul, triples, ({}, {"value": -0.7}))
register("addcdiv", torch.addcdiv, triples, ({}, {"value": -0.7}))

AWKWARD = np.array([0, 1, -2.5, np.inf, -np.inf, np.nan], np.float32)
for function in (torch.isnan, torch.isinf, torch.isfinite):
    register(function.__name__, lambda x, f=function: f(x.detach()), lambda kit: [[AWKWARD]])
    register(function.__name__, function, lambda kit: [[kit.integers(9, 4, 5)]])
register("isclose", torch.isclose,
         lambda kit: [[AWKWARD, AWKWARD], [AWKWARD, AWKWARD[::-1].copy()],
                      [AWKWARD, AWKWARD * np.float32(1 + 1e-6)]],
         ({}, {"equal_nan": True}, {"rtol": 0.5, "atol": 2.0}))
register("nan_to_num", torch.nan_to_num, lambda kit: [[AWKWARD]],
         ({"nan": 1.5, "posinf": 3.0, "neginf": -2.0}, {"posinf": 3.0, "neginf": -2.0}))

# ---- activations

for function in (F.logsigmoid, F.tanhshrink, F.softsign):
    register(function.__name__ if function is not F.logsigmoid else "logsigmoid", function, reals)
register("celu", F.celu, reals, ({}, {"alpha": 0.75}))
register("hardshrink", F.hardshrink, reals, ({}, {"lambd": 1.3}))
register("softshrink", F.softshrink, reals, ({}, {"lambd": 1.3}))
register("threshold", F.threshold, reals, ({"threshold": 0.1, "value": 20.0},))
register("glu", F.glu, lambda kit: [[kit.normal(4, 6)], [kit.normal(2, 3, 2)]], ({}, {"dim": -1}))
register("glu", F.glu, lambda kit: [[kit.normal(4, 5)]], ({"dim": 0},))
register("softmin", F.softmin, lambda kit: [[kit.normal(4, 5)]], ({"dim": 0}, {"dim": -1}))
register("prelu", F.prelu, lambda kit: [
    [kit.normal(4, 5), kit.normal(5)], [kit.normal(2, 3, 4), kit.normal(1)],
    [kit.normal(7), kit.normal(1)], [kit.normal(2, 3, 4), kit.normal(3)]])
for name, function in (("softplus", F.softplus), ("mish", F.mish), ("elu", F.elu), ("selu", F.selu),
                       ("leaky_relu", F.leaky_relu), ("hardsigmoid", F.hardsigmoid),
                       ("hardswish", F.hardswish), ("hardtanh", F.hardtanh), ("relu6", F.relu6)):
    register(name, function, lambda kit: [[EDGES]])
