"""Half types: inputs already rounded, expected values in float64."""

import numpy as np
import torch
import torch.nn.functional as F

from .common import (
    A,
    Cases,
    coin,
    dim_of,
    distinct,
    f,
    ints,
    number,
    off,
    resized,
    rng,
    shape,
    some,
)


def write():
    class Half(Cases):
        """Each case in both half types; tolerances are `loose` times the type's epsilon."""

        def rounded(self, x):
            return torch.from_numpy(np.asarray(x, np.float32)).to(self.run_in).float().numpy()

        def upstream(self, s):
            return self.rounded(super().upstream(s))

        def add(self, op, inputs, args=None, names="input", fn=None, loose=4, **more):
            args = args or {}
            fn = fn or (
                lambda *t: next(getattr(p, op) for p in self.places if hasattr(p, op))(*t, **args)
            )
            for self.run_in in (torch.bfloat16, torch.float16):
                eps = torch.finfo(self.run_in).eps
                ins = [self.rounded(x) if x.dtype == np.float32 else x for x in inputs]
                super().add(
                    op,
                    ins,
                    dict(args, dtype=str(self.run_in)[6:]),
                    names,
                    fn,
                    tol=(loose * eps, loose * eps),
                    **more
                )

        def prove(self, g, *rest):
            try:
                super().prove(g, *rest)
            except RuntimeError as e:
                if "not implemented for" not in str(e):
                    raise
                print("not proved:", g.name, str(e)[:90])

    fam = Half("half", places=(F, torch))
    for _ in range(-(-2 * A.variants // 3)):
        s = shape(1, 3, 5)
        away = lambda lo, hi: f(s, lo=lo, hi=hi)
        for op, x in [
            ("exp", away(-2, 2)),
            ("log", away(0.3, 4)),
            ("sqrt", away(0.3, 4)),
            ("rsqrt", away(0.3, 4)),
            ("tanh", away(-2, 2)),
            ("sigmoid", away(-4, 4)),
            ("erf", away(-2, 2)),
            ("sin", away(-3, 3)),
            ("abs", off(s)),
            ("relu", off(s)),
            ("gelu", away(-3, 3)),
            ("silu", away(-3, 3)),
            ("softplus", away(-3, 3)),
            ("elu", off(s)),
            ("hardswish", off(s)),
        ]:
            fam.add(op, [x])
        p = shape(1, 3, 4)
        q = resized(p, dim_of(p), 1) if coin() else p
        for op, x, y in [
            ("add", f(p), f(q)),
            ("sub", f(p), f(q)),
            ("mul", f(p), f(q)),
            ("div", f(p), f(q, lo=0.5, hi=2)),
            ("maximum", distinct(p), distinct(q) + np.float32(0.0173)),
        ]:
            fam.add(op, [x, y], {}, "input other", loose=8 if op in ("mul", "div") else 4)
        fam.add("where", [rng.rand(*s) < 0.5, f(s), f(s)], {}, "condition input other", torch.where)
        fam.add("clamp", [off(s)], {"min": -0.5, "max": 0.7})
        m, k, n, b = number(1, 9), number(1, 33), number(1, 9), number(1, 4)
        fam.add("matmul", [f(m, k), f(k, n)], {}, "input other")
        fam.add("bmm", [f(b, m, k), f(b, k, n)], {}, "input mat2")
        fam.add("linear", [f(b, m, k), f(n, k), f(n)], {}, "input weight bias")
        a = {"stride": [1, 2], "padding": [1, 0], "dilation": [1, 1], "groups": some(1, 2)}
        fam.add(
            "conv2d",
            [f(2, 4, 5, 6), f(4, 4 // a["groups"], 3, 2), f(4)],
            a,
            "input weight bias",
            loose=8,
        )
        d = dim_of(s)
        for op in ("softmax", "log_softmax"):
            fam.add(op, [f(s) * 2], {"dim": d})
        fam.add(
            "layer_norm",
            [f(2, 3, 6), f(6), f(6)],
            {"normalized_shape": [6], "eps": 1e-5},
            "input weight bias",
            lambda x, w, b: F.layer_norm(x, [6], w, b, 1e-5),
            loose=8,
        )
        fam.add(
            "rms_norm",
            [f(3, m, 6), f(6)],
            {"normalized_shape": [6], "eps": 1e-5},
            "input weight",
            lambda x, w: F.rms_norm(x, [6], w, 1e-5),
        )
        fam.add(
            "group_norm",
            [f(2, 4, 3, 3), f(4), f(4)],
            {"num_groups": 2, "eps": 1e-5},
            "input weight bias",
            lambda x, w, b: F.group_norm(x, 2, w, b, 1e-5),
            loose=8,
        )
        fam.add(
            "cross_entropy",
            [f(n + 1, 5) * 2, ints(5, n + 1)],
            {"reduction": "mean"},
            "input target",
        )
        fam.add("mse_loss", [f(m, n), f(m, n)], {"reduction": "mean"}, "input target")
        fam.add(
            "binary_cross_entropy_with_logits",
            [f(m, n) * 2, f(m, n, lo=0, hi=1)],
            {"reduction": "mean"},
            "input target",
            constant=(1,),
        )
        keep = coin()
        for op in ("sum", "mean", "amax"):
            fam.add(
                op,
                [distinct(s)],
                {"dim": [d], "keepdim": keep},
                fn=lambda x: getattr(torch, op)(x, [d], keepdim=keep),
            )
        fam.add("logsumexp", [f(s)], {"dim": [d], "keepdim": keep})
        fam.add("cumsum", [f(s)], {"dim": d})
        a = {"kernel_size": [2, 3], "stride": [2, 1], "padding": [0, 1]}
        fam.add("max_pool2d", [distinct(1, 2, 5, 6)], a)
        fam.add("avg_pool2d", [f(1, 2, 5, 6)], a)
        fam.add("embedding", [ints(6, 4), f(6, 3)], {}, "input weight")
        fam.add(
            "scaled_dot_product_attention",
            [f(1, 2, 4, 6), f(1, 2, 5, 6), f(1, 2, 5, 6)],
            {"is_causal": False},
            "query key value",
        )
    fam.close(fam.name)
