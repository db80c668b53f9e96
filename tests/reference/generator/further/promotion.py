"""Result types: each operator on every pair of types, as a tensor with dimensions, one without, a scalar."""

import json
import zlib

import numpy as np
import torch

from .common import A, Family, coin, f, rng, small


def write():
    fam = Family("promotion")
    rng.seed(zlib.crc32(f"{A.seed} promotion".encode()))
    TYPES = [
        torch.bool,
        torch.uint8,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
    ]
    SCALARS, refused = [3, 2.5, True], []

    def operand(t, s, nonzero=False):
        """Few and small values, so that every type holds them and most results exactly."""
        if t == torch.bool:
            return torch.from_numpy(np.asarray(rng.rand(*s) < 2 * (nonzero or 0.25)))
        if t.is_floating_point:
            return torch.from_numpy(np.asarray(rng.choice([0.5, 1.0, 1.5, 2.0, 3.0], s))).to(t)
        return torch.from_numpy(np.asarray(rng.randint(1, 4, s))).to(t)

    def store(g, member, t):
        kept = t if t.dtype == torch.bool else t.double() if t.is_floating_point() else t.long()
        g.create_dataset(member, data=kept.numpy()).attrs["dtype"] = str(t.dtype)[6:]

    for op in ("add", "mul", "div", "pow", "maximum", "eq", "lt", "where"):
        for form in ("tensor", "0-dim", "scalar"):
            if op == "maximum" and form == "scalar":
                continue
            for left in TYPES:
                ls, rs = ([2, 1], [3]) if A.hard else ([3], [3])
                x, done = operand(left, ls), []
                a = {"form": form}
                call = getattr(torch, op)
                if op == "where":
                    a["condition"] = [True, False, coin()]
                    call = lambda x, y: torch.where(torch.tensor(a["condition"]), x, y)
                for y in (
                    SCALARS
                    if form == "scalar"
                    else [operand(t, rs if form == "tensor" else [], op == "div") for t in TYPES]
                ):
                    try:
                        done.append((y, call(x, y)))
                    except RuntimeError:
                        refused.append((op, form, left, y if form == "scalar" else y.dtype))
                if not done:
                    continue
                if form == "scalar":
                    a["scalars"] = [y for y, _ in done]
                g = fam.file.create_group(f"{fam.count:04d}_{op}")
                fam.count += 1
                eps = max(
                    [torch.finfo(o.dtype).eps for _, o in done if o.is_floating_point()] + [0]
                )
                g.attrs["op"], g.attrs["args"], g.attrs["rtol"], g.attrs["atol"] = (
                    op,
                    json.dumps(a, sort_keys=True),
                    2 * eps,
                    0.0,
                )
                store(g, "in/0", x)
                for i, (y, o) in enumerate(done):
                    if form != "scalar":
                        store(g, f"in/{i + 1}", y)
                    store(g, f"out/{i}", o)
                    assert torch.isfinite(o).all(), (op, x, y)
    fam.close("promotion")
    print(
        "promotion leaves out what PyTorch refuses:",
        *sorted(
            {f"{r[0]}({str(r[2])[6:]}, {str(r[3]).removeprefix('torch.')}) {r[1]}" for r in refused}
        ),
    )
