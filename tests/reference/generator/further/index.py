"""Reading and writing by index or mask."""

import numpy as np
import torch

from .common import (
    Cases,
    V,
    coin,
    dim_of,
    distinct,
    f,
    ints,
    number,
    off,
    resized,
    rng,
    sh,
    shape,
    small,
    some,
)


def write():
    fam = Cases("index")

    def no_repeats(s, d, k):
        """Indices into dimension d of shape s: k along d, none twice."""
        return np.ascontiguousarray(
            np.take(np.argsort(rng.rand(*s), axis=d), range(k), axis=d)
        ).astype(np.int64)

    for _ in V:
        s = shape(1, 3, 5)
        d = dim_of(s)
        s[d] += 1
        k = number(1, s[d] + 1)
        part = resized(s, d, k)
        scatter = "input index src"
        fam.add(
            "scatter",
            [f(s), no_repeats(s, d, k), f(part)],
            {"dim": d},
            scatter,
            lambda x, i, v: torch.scatter(x, d, i, v),
        )
        fam.add(
            "scatter",
            [f(s), no_repeats(s, d, k)],
            {"dim": d, "value": 1.5},
            "input index",
            lambda x, i: torch.scatter(x, d, i, 1.5),
        )
        fam.add(
            "scatter",
            [f(4, 5), no_repeats([4, 5], 1, 3)[:2], f(2, 3)],
            {"dim": 1},
            scatter,
            lambda x, i, v: torch.scatter(x, 1, i, v),
        )
        many = resized(s, d, s[d] + 3)
        fam.add(
            "scatter_add",
            [f(s), ints(s[d], *many), f(many)],
            {"dim": d},
            scatter,
            lambda x, i, v: torch.scatter_add(x, d, i, v),
        )
        for how in ("sum", "amax", "mean"):
            own = coin()
            fam.add(
                "scatter_reduce",
                [distinct(s), ints(s[d], *many), off(many)],
                {"dim": d, "reduce": how, "include_self": own},
                scatter,
                lambda x, i, v: torch.scatter_reduce(x, d, i, v, how, include_self=own),
            )
        alpha = some(1.0, -0.5)
        fam.add(
            "index_add",
            [f(s), ints(s[d], 4), f(resized(s, d, 4))],
            {"dim": d, "alpha": alpha},
            "input index source",
            lambda x, i, v: torch.index_add(x, d, i, v, alpha=alpha),
        )
        put = lambda add: lambda x, *t: torch.index_put(x, t[:-1], t[-1], add)
        fam.add(
            "index_put",
            [f(4, 5), ints(4, 6), ints(5, 6), f(6)],
            {"accumulate": True},
            "input indices.0 indices.1 values",
            put(True),
        )
        fam.add(
            "index_put",
            [f(4, 3), ints(4, 5), f(5, 3)],
            {"accumulate": True},
            "input indices.0 values",
            put(True),
        )
        once = rng.permutation(20)[:6]
        fam.add(
            "index_put",
            [f(4, 5), (once // 5).astype(np.int64), (once % 5).astype(np.int64), f(6)],
            {"accumulate": False},
            "input indices.0 indices.1 values",
            put(False),
        )
        fam.add(
            "index_put",
            [f(4, 5), rng.rand(4, 5) < 0.5, f(1)],
            {"accumulate": False},
            "input indices.0 values",
            put(False),
        )
        fam.add(
            "index_fill",
            [f(s), ints(s[d], 2)],
            {"dim": d, "value": -1.5},
            "input index",
            lambda x, i: torch.index_fill(x, d, i, -1.5),
        )
        s = sh()
        fam.add("masked_select", [f(s), rng.rand(*s) < 0.5], {}, "input mask")
        fam.add("masked_select", [f(3, 4), np.array([True, False, True, coin()])], {}, "input mask")
        fam.add(
            "masked_scatter",
            [f(s), rng.rand(*s) < 0.5, f(max(1, int(np.prod(s))))],
            {},
            "input mask source",
        )
        s = shape(1, 3, 5)
        d = dim_of(s)
        n = int(np.prod(s))
        fam.add("take", [f(s), rng.randint(-n, n, (2, 3)).astype(np.int64)], {}, "input index")
        fam.add(
            "take_along_dim", [f(s), ints(s[d], *resized(s, d, 3))], {"dim": d}, "input indices"
        )
        fam.add("take_along_dim", [f(s), ints(n, 4)], {}, "input indices")
        fam.add("take_along_dim", [f(3, 1, 4), ints(4, 1, 2, 3)], {"dim": 2}, "input indices")
        fam.add("nonzero", [small(*sh())], {}, diff=False)
        fam.add("nonzero", [rng.rand(3, 4) < 0.4], {})
        for op in ("max", "min"):
            fam.add(op, [distinct(s)], {"dim": d, "keepdim": coin()})
            fam.add(
                op, [small(*s)], {"dim": d, "keepdim": coin()}, diff=False
            )  # the first of equals
            fam.add(op, [distinct(s)], {})
        aminmax = lambda **k: lambda x: tuple(torch.aminmax(x, **k))
        keep = coin()
        fam.add(
            "aminmax", [distinct(s)], {"dim": d, "keepdim": keep}, fn=aminmax(dim=d, keepdim=keep)
        )
        fam.add("aminmax", [distinct(s)], {}, fn=aminmax())
    fam.close(fam.name)
