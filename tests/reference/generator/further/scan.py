"""Scans along a dimension."""

import numpy as np
import torch

from .common import Cases, LOOSE, V, dim_of, distinct, f, ints, resized, rng, sh, shape


def write():
    fam = Cases("scan")
    for _ in V:
        for op in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
            s = sh()
            d = dim_of(s)
            x = {
                "cumprod": lambda: f(s, lo=0.5, hi=1.5) * rng.choice([-1, 1], s).astype(np.float32),
                "logcumsumexp": lambda: f(s) * 3,
            }.get(op, lambda: distinct(s))()
            fam.add(op, [x], {"dim": d})
        x = f(3, 6, lo=0.5, hi=1.5)
        x[0, 2] = x[1, 0] = x[1, 4] = 0
        fam.add("cumprod", [x], {"dim": 1})
        fam.add("logcumsumexp", [f(2, 5) * 20 + np.float32(300)], {"dim": 1}, tol=LOOSE)
        fam.add("cumsum", [ints(9, 3, 4)], {"dim": 0})
        fam.add("cumsum", [f(2, 65)], {"dim": 1})
        for n in (1, 2):
            s = shape(1, 3, 5)
            d = dim_of(s)
            s[d] += 2
            fam.add("diff", [f(s)], {"n": n, "dim": d})
        fam.add(
            "diff",
            [f(s), f(resized(s, d, 1)), f(resized(s, d, 2))],
            {"n": 1, "dim": d},
            "input prepend append",
            lambda x, p, a: torch.diff(x, 1, d, prepend=p, append=a),
        )
    fam.close(fam.name)
