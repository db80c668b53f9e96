"""More normalization."""

import torch
import torch.nn.functional as F

from .common import Cases, LOOSE, V, f, number, some


def write():
    fam = Cases("norm_more", LOOSE, places=(F,))
    for _ in V:
        c = 2 * number(1, 4)
        s = some([3, c, 5], [2, c, 4, 3], [2, c, 2, 3, 2])
        rm, rv = f(c), f(c, lo=0.5, hi=2)
        running = {
            "running_mean": [float(v) for v in rm],
            "running_var": [float(v) for v in rv],
            "momentum": some(0.1, 0.3),
            "eps": some(1e-5, 1e-3),
        }
        stats = lambda x: (
            torch.from_numpy(rm).to(x.dtype, copy=True),
            torch.from_numpy(rv).to(x.dtype, copy=True),
        )
        wb = "input weight bias"
        eps, momentum = running["eps"], running["momentum"]
        for own in (True, False):
            fam.add(
                "instance_norm",
                [f(s), f(c), f(c)],
                dict(running, use_input_stats=own),
                wb,
                lambda x, w, b: F.instance_norm(x, *stats(x), w, b, own, momentum, eps),
            )
            fam.add(
                "instance_norm",
                [f(s)],
                dict(running, use_input_stats=own),
                fn=lambda x: F.instance_norm(x, *stats(x), None, None, own, momentum, eps),
            )
        fam.add(
            "batch_norm",
            [f(s), f(c), f(c)],
            dict(running, training=False),
            wb,
            lambda x, w, b: F.batch_norm(x, *stats(x), w, b, False, momentum, eps),
        )
        fam.add(
            "batch_norm",
            [f(4, c)],
            dict(running, training=False),
            fn=lambda x: F.batch_norm(x, *stats(x), None, None, False, momentum, eps),
        )

        def updated(x):
            m, v = stats(x)
            F.batch_norm(x, m, v, None, None, True, momentum, eps)
            return m, v

        fam.add(
            "batch_norm_stats", [f(s) * 2], dict(running, training=True), fn=updated, diff=False
        )
        for groups in (1, 2, c):
            fam.add(
                "group_norm",
                [f(s), f(c), f(c)],
                {"num_groups": groups, "eps": eps},
                wb,
                lambda x, w, b: F.group_norm(x, groups, w, b, eps),
            )
        fam.add("group_norm", [f(s)], {"num_groups": 2, "eps": eps})
        for shape_ in (s[-1:], s[1:]):
            fam.add(
                "rms_norm",
                [f(s), f(shape_)],
                {"normalized_shape": shape_, "eps": eps},
                "input weight",
                lambda x, w: F.rms_norm(x, shape_, w, eps),
            )
        fam.add("rms_norm", [f(s)], {"normalized_shape": s[-1:], "eps": eps})
        fam.add(
            "local_response_norm",
            [f(s)],
            {
                "size": number(1, 6),
                "alpha": some(1e-4, 0.5),
                "beta": some(0.75, 0.5),
                "k": some(1.0, 2.0),
            },
        )
        k = number(0, 3)
        w = [number(2, 4), number(2, 4), number(1, 4)]
        fam.add(
            "weight_norm",
            [f(w), f([w[k] if q == k else 1 for q in range(3)])],
            {"dim": k},
            "v g",
            lambda v, g: torch._weight_norm(v, g, k),
        )
    fam.close(fam.name)
