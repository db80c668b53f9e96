"""Cases of order statistics, of reductions that skip NaN, and of indexing."""
import numpy as np
import torch

from .operators import operator

NAN = float("nan")


def with_nan(x, *places):
    for place in places:
        x[place] = NAN
    return x


@operator("order", "nanmedian")
def nanmedian(kit):
    for dim, keepdim in [(0, False), (-1, True)]:
        x = with_nan(kit.normal(4, 5), (0, 1), (1, 1), (3, 4))
        kit.case(lambda t: torch.nanmedian(t, dim, keepdim), [x], {"dim": dim, "keepdim": keepdim})
    kit.case(torch.nanmedian, [with_nan(kit.normal(3, 4), (0, 0), (2, 3))])


@operator("order", "median")
def median_of_all(kit):
    kit.case(torch.median, [kit.normal(3, 4)])
    kit.case(torch.median, [np.asarray([3, 1, 1, 2, 1, 5], np.float32)])


@operator("order", "mode")
def mode(kit):
    for dim, keepdim in [(0, False), (-1, True), (1, False)]:
        x = kit.integers(3, 6, 7).astype(np.float32)
        kit.case(lambda t: torch.mode(t, dim, keepdim), [x], {"dim": dim, "keepdim": keepdim})
    kit.case(lambda t: torch.mode(t, -1), [kit.integers(4, 3, 9)])


def quantile_cases(kit, function, *missing):
    for how in ("linear", "lower", "higher", "midpoint", "nearest"):
        q = np.asarray([0, 0.3, 0.5, 1], np.float32)
        x = with_nan(kit.normal(4, 5), *missing)
        kit.case(lambda t, p: function(t, p, 1, interpolation=how), [x, q],
                 {"dim": 1, "interpolation": how}, constant=(1,))
        kit.case(lambda t, p: function(t, p, 0, True, interpolation=how),
                 [x, np.asarray(0.62, np.float32)],
                 {"dim": 0, "keepdim": True, "interpolation": how}, constant=(1,))
        kit.case(lambda t, p: function(t, p, interpolation=how), [x, q], {"interpolation": how},
                 constant=(1,))


@operator("order", "quantile")
def quantile(kit):
    quantile_cases(kit, torch.quantile)
    x = with_nan(kit.normal(3, 5), (1, 2))
    kit.case(lambda t, p: torch.quantile(t, p, 1), [x, np.asarray([0.2, 0.9], np.float32)],
             {"dim": 1}, constant=(1,), differentiate=False)


@operator("order", "nanquantile")
def nanquantile(kit):
    quantile_cases(kit, torch.nanquantile, (0, 1), (2, 2), (2, 3))


@operator("order", "unique_consecutive")
def unique_consecutive(kit):
    def case(x, args):
        kit.case(lambda t: torch.unique_consecutive(t, return_inverse=True, return_counts=True,
                                                    **args), [x], args, differentiate=False)

    case(kit.integers(2, 4, 5), {})
    case(kit.integers(2, 9).astype(np.float32), {})
    case(kit.integers(2, 7, 1), {"dim": 0})
    case(kit.integers(2, 2, 6), {"dim": 1})


@operator("order", "bucketize")
def bucketize(kit):
    edges = np.asarray([-1, -0.25, 0.5, 2], np.float32)
    for right in (False, True):
        x = kit.normal(3, 4)
        x[0, :3] = [-1, 0.5, NAN]
        kit.case(lambda t, b: torch.bucketize(t, b, right=right), [x, edges], {"right": right},
                 differentiate=False)


@operator("order", "isin")
def isin(kit):
    for invert in (False, True):
        kit.case(lambda t, e: torch.isin(t, e, invert=invert),
                 [kit.integers(9, 4, 5), kit.integers(9, 4)], {"invert": invert})
    kit.case(torch.isin, [kit.integers(3, 8).astype(np.float32), np.asarray([1, NAN], np.float32)],
             differentiate=False)


@operator("order", "nansum")
def nansum(kit):
    x = with_nan(kit.normal(4, 5), (0, 1), (1, 1), (3, 4))
    kit.case(lambda t: torch.nansum(t, [1]), [x], {"dim": [1]})
    kit.case(lambda t: torch.nansum(t, [0], True), [x], {"dim": [0], "keepdim": True})
    kit.case(torch.nansum, [x])


@operator("order", "nanmean")
def nanmean(kit):
    x = with_nan(kit.normal(4, 5), (0, 1), (1, 1), (3, 4))
    kit.case(lambda t: torch.nanmean(t, [1]), [x], {"dim": [1]})
    kit.case(lambda t: torch.nanmean(t, [0], True), [x], {"dim": [0], "keepdim": True})
    kit.case(torch.nanmean, [x])


@operator("order", "count_nonzero")
def count_nonzero(kit):
    kit.case(lambda t: torch.count_nonzero(t, [1]), [kit.integers(2, 4, 5)], {"dim": [1]})
    kit.case(torch.count_nonzero, [with_nan(kit.normal(4, 5), (0, 1))], differentiate=False)


@operator("order", "var_mean")
def var_mean(kit):
    kit.case(lambda t: torch.var_mean(t, [1], correction=1), [kit.normal(4, 5)], {"dim": [1]})
    kit.case(lambda t: torch.var_mean(t, [0, 2], correction=0, keepdim=True),
             [kit.normal(2, 3, 4)], {"dim": [0, 2], "correction": 0, "keepdim": True})


@operator("order", "std_mean")
def std_mean(kit):
    kit.case(lambda t: torch.std_mean(t, [1], correction=1), [kit.normal(4, 5)], {"dim": [1]})
    kit.case(lambda t: torch.std_mean(t, [0, 2], correction=0, keepdim=True),
             [kit.normal(2, 3, 4)], {"dim": [0, 2], "correction": 0, "keepdim": True})


@operator("order", "dist")
def dist(kit):
    for p in (0, 1, 2, 3, "inf"):
        kit.case(lambda a, b: torch.dist(a, b, float(p)), [kit.normal(3, 4), kit.normal(4)],
                 {"p": p}, differentiate=p != 0)  # of p = 0 PyTorch 2.15 cannot add up the gradient


@operator("order", "renorm")
def renorm(kit):
    for p, dim, most in [(2, 0, 1.5), (1, 1, 3.0), (3, -1, 1.0)]:
        kit.case(lambda t: torch.renorm(t, p, dim, most), [kit.normal(3, 4, 2)],
                 {"p": p, "dim": dim, "maxnorm": most})


@operator("indexing", "index_copy")
def index_copy(kit):
    index = np.asarray([3, 0, 1], np.int64)
    kit.case(lambda t, i, s: torch.index_copy(t, 0, i, s), [kit.normal(4, 3), index, kit.normal(3, 3)],
             {"dim": 0})
    kit.case(lambda t, i, s: torch.index_copy(t, -1, i, s),
             [kit.normal(2, 5), index, kit.normal(2, 3)], {"dim": -1})


@operator("indexing", "index")
def index(kit):
    rows, columns = kit.integers(4, 3) - 2, kit.integers(5, 2, 1)
    kit.case(lambda t, i: t[i], [kit.normal(4, 5), rows])
    kit.case(lambda t, i, j: t[i, j], [kit.normal(4, 5), rows, columns])
    kit.case(lambda t, i, j: t[i, :, j], [kit.normal(4, 2, 5), rows, columns], {"whole": 1})
    kit.case(lambda t, i, j: t[:, i, j], [kit.normal(2, 4, 5), rows, columns], {"whole": 0})
    kit.case(lambda t, m: t[m], [kit.normal(4, 5, 2), kit.flags(4, 5)])
    kit.case(lambda t, m, j: t[m, j], [kit.normal(4, 5, 2), np.asarray([True, False, True, True]),
                                       kit.integers(5, 1)])


@operator("indexing", "put")
def put(kit):
    index = np.asarray([5, -1, 0], np.int64)
    kit.case(lambda t, i, s: t.put(i, s), [kit.normal(3, 4), index, kit.normal(3)])
    repeated = np.asarray([5, -1, 5, 11], np.int64)
    kit.case(lambda t, i, s: t.put(i, s, True), [kit.normal(3, 4), repeated, kit.normal(4)],
             {"accumulate": True})
