"""Sorting, searching, counting."""

import numpy as np

from .common import Cases, V, coin, dim_of, distinct, f, ints, number, rng, sh, shape, small, some


def write():
    fam = Cases("sort")
    for _ in V:
        s = sh()
        d = dim_of(s)
        down = coin()
        fam.add("sort", [distinct(s)], {"dim": d, "descending": down, "stable": False})
        fam.add("sort", [small(*s)], {"dim": d, "descending": not down, "stable": True})
        fam.add(
            "sort",
            [rng.permutation(12).reshape(3, 4).astype(np.int64)],
            {"dim": 1, "descending": down, "stable": False},
        )
        fam.add("argsort", [small(*s)], {"dim": d, "descending": down, "stable": True}, diff=False)
        s = shape(1, 3, 6)
        d = dim_of(s)
        for largest in (True, False):
            fam.add(
                "topk",
                [distinct(s)],
                {"k": number(1, s[d] + 1), "dim": d, "largest": largest, "sorted": True},
            )
        fam.add("kthvalue", [distinct(s)], {"k": number(1, s[d] + 1), "dim": d, "keepdim": coin()})
        fam.add("median", [distinct(s)], {"dim": d, "keepdim": coin()})
        three = {"sorted": True, "return_inverse": True, "return_counts": True}
        fam.add("unique", [small(*sh())], three, diff=False)
        fam.add("unique", [ints(4, 3, 5)], three)
        fam.add(
            "unique", [rng.randint(0, 2, (6, 2)).astype(np.float32)], dict(three, dim=0), diff=False
        )
        for right in (False, True):
            fam.add(
                "searchsorted",
                [
                    np.arange(-3, 4).astype(np.float32) / 2,
                    rng.randint(-8, 9, (3, 4)).astype(np.float32) / 4,
                ],
                {"right": right},
                "sorted_sequence input",
                diff=False,
            )
            fam.add(
                "searchsorted",
                [np.sort(ints(9, 3, 5)), ints(10, 3, 4)],
                {"right": right},
                "sorted_sequence input",
            )
        fam.add("bincount", [ints(6, number(1, 15))], {"minlength": some(0, 3, 9)})
        n = number(1, 15)
        fam.add("bincount", [ints(6, n), f(n)], {"minlength": 0}, "input weights", diff=False)
        n = number(2, 7)
        x = ((rng.randint(-1, n + 1, 20) + rng.uniform(0.2, 0.8, 20)) * 3 / n - 1).astype(
            np.float32
        )  # away from the edges, some outside
        fam.add("histc", [x], {"bins": n, "min": -1.0, "max": 2.0}, diff=False)
    fam.close(fam.name)
