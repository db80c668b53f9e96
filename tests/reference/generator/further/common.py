"""What the families share: random inputs, and the file that proved cases go into.

Every case is proved before it is kept: its values are finite, every input that should have a
gradient has one, and PyTorch's own run in float32 (family `half`: in the half type) lies within half
the case's tolerances. Each family draws its own random numbers, so that a change to one leaves the
others as they are.
"""

import json
import os
import types
import warnings
import zlib

import h5py
import numpy as np
import torch
import torch.nn.functional as F

A = types.SimpleNamespace(out=None, seed=1, variants=3, hard=False)  # write() sets the folder
LOOSE, SOLVER = (1e-3, 1e-4), (2e-3, 2e-3)  # tolerances
V = range(3)  # the variants of each case
rng = np.random.RandomState(A.seed)


class Family:
    def __init__(self, name):
        self.file = h5py.File(os.path.join(A.out, name + ".h5"), "w", libver=("v108", "v112"))
        self.count = 0

    def upstream(self, s):
        return np.asarray(rng.randn(*s), np.float32)

    def case(self, op, fn, inputs, args=None, names=None, diff=True, tol=(1e-4, 1e-5), constant=()):
        """inputs: list of numpy arrays; fn(*tensors) -> tensor or tuple."""
        ts, leaves = [], []
        for i, x in enumerate(inputs):
            if x is None:
                ts.append(None)
                continue
            t = torch.from_numpy(np.array(x))
            if t.dtype == torch.float32:
                t = t.double().requires_grad_(diff and i not in constant)
                if i not in constant:
                    leaves.append(t)
            ts.append(t)
        out = fn(*ts)
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        g = self.file.create_group(f"{self.count:04d}_{op}")
        self.count += 1
        g.attrs["op"] = op
        g.attrs["args"] = json.dumps(args or {}, sort_keys=True)
        g.attrs["rtol"], g.attrs["atol"] = tol
        names = names or [f"x{i}" for i in range(len(inputs))]
        for i, (n, x) in enumerate(zip(names, inputs)):
            if x is not None:
                d = g.create_dataset(f"in/{i}", data=x)
                d.attrs["name"] = n
        for i, o in enumerate(outs):
            g.create_dataset(f"out/{i}", data=o.detach().numpy())
        fouts = [(i, o) for i, o in enumerate(outs) if o.is_floating_point() and o.requires_grad]
        if diff and leaves and fouts:
            gouts = [torch.from_numpy(self.upstream(o.shape)).double() for _, o in fouts]
            grads = torch.autograd.grad([o for _, o in fouts], leaves, gouts, allow_unused=True)
            for (i, _), go in zip(fouts, gouts):
                g.create_dataset(f"gout/{i}", data=go.numpy().astype(np.float32))
            k = 0
            for i, t in enumerate(ts):
                if t is not None and t.dtype == torch.float64 and i not in constant:
                    if grads[k] is not None:
                        g.create_dataset(f"gin/{i}", data=grads[k].detach().numpy())
                    k += 1

    def close(self, name):
        print(f"{name}: {self.count} cases")
        self.file.close()


def shape(lo=1, hi=4, maxdim=7):
    nd = rng.randint(lo, hi + 1)
    s = [int(rng.randint(1, maxdim + 1)) for _ in range(nd)]
    if A.hard and nd and rng.rand() < 0.25:
        s[rng.randint(nd)] = 1
    return s


def f(*s, lo=None, hi=None):
    s = s[0] if len(s) == 1 and isinstance(s[0], (list, tuple)) else s
    x = rng.randn(*s) if lo is None else rng.uniform(lo, hi, s)
    return np.asarray(x, np.float32)


def distinct(*s):
    s = s[0] if len(s) == 1 and isinstance(s[0], (list, tuple)) else s
    n = int(np.prod(s))
    return ((rng.permutation(n) - n / 2) / max(n, 1) * 4).astype(np.float32).reshape(s)


def ints(n, *s):
    return rng.randint(0, n, s).astype(np.int64)


def broadcast_pair():
    s = shape(1, 4)
    a, b = list(s), list(s)
    for i in range(len(s)):
        r = rng.rand()
        if r < 0.25:
            a[i] = 1
        elif r < 0.5:
            b[i] = 1
    if rng.rand() < 0.3:
        b = b[rng.randint(len(b)) :]
    return (a, b) if rng.rand() < 0.5 else (b, a)


class Cases(Family):
    def __init__(self, name, tol=(1e-4, 1e-5), places=(torch, F)):
        super().__init__(name)
        self.name, self.tol, self.places, self.run_in = name, tol, places, torch.float32
        rng.seed(zlib.crc32(f"{A.seed} {name}".encode()))

    def add(self, op, inputs, args=None, names="input", fn=None, diff=True, tol=None, constant=()):
        """fn defaults to the operator of that name, called with the inputs in order and the arguments by name."""
        args, tol = args or {}, tol or self.tol
        fn = fn or (
            lambda *t: next(getattr(p, op) for p in self.places if hasattr(p, op))(*t, **args)
        )
        names = names.split()
        assert len(names) == len(inputs), (op, names)
        self.case(op, fn, inputs, args, names, diff, tol, constant)
        self.prove(self.file[f"{self.count - 1:04d}_{op}"], fn, diff, constant)

    def prove(self, g, fn, diff, constant):
        ts = [torch.from_numpy(np.asarray(g[f"in/{i}"])) for i in range(len(g["in"]))]
        ts = [t.to(self.run_in) if t.is_floating_point() else t for t in ts]
        leaves = [
            i for i, t in enumerate(ts) if t.is_floating_point() and diff and i not in constant
        ]
        for i in leaves:
            ts[i].requires_grad_()
        out = fn(*ts)
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        for i, o in enumerate(outs):
            self.compare(g, f"out/{i}", o)
        assert "gin" in g or not leaves, (g.name, "has no gradient")
        if not leaves:
            return
        with_grad = [int(i) for i in g["gout"]]
        grads = torch.autograd.grad(
            [outs[i] for i in with_grad],
            [ts[i] for i in leaves],
            [torch.from_numpy(np.asarray(g[f"gout/{i}"])).to(outs[i].dtype) for i in with_grad],
        )
        for i, t in zip(leaves, grads):
            self.compare(g, f"gin/{i}", t)

    def compare(self, g, member, actual):
        e, a = (
            np.asarray(g[member]),
            actual.detach()
            .to(torch.float64 if actual.is_floating_point() else actual.dtype)
            .numpy(),
        )
        assert e.shape == a.shape and np.isfinite(e).all(), (g.name, member, e)
        if e.dtype.kind != "f":
            assert (e == a).all(), (g.name, member, e, a)
            return
        excess = np.abs(a - e) - 0.5 * (g.attrs["atol"] + g.attrs["rtol"] * np.abs(e))
        assert (excess <= 0).all(), (
            g.name,
            member,
            g.attrs["args"],
            "off by",
            np.abs(a - e).max(),
            "at",
            e.flat[np.argmax(np.abs(a - e))],
        )


def coin(p=0.5):
    return bool(rng.rand() < p)


def number(lo, hi):
    return int(rng.randint(lo, hi))


def some(*values):
    return values[rng.randint(len(values))]


def sh(lo=1, hi=3, maxdim=5, empty=True):
    """A shape; now and then, with --hard more often, one with a dimension of size 0."""
    s = shape(lo, hi, maxdim)
    if empty and coin(0.2 if A.hard else 0.05):
        s[rng.randint(len(s))] = 0
    return s


def dim_of(s):
    return number(-len(s), len(s))


def small(*s):
    return rng.randint(-2, 3, s).astype(np.float32)  # whole numbers, many of them equal


def off(*s):
    return distinct(*s) + np.float32(0.013)  # no two equal, none at a kink


def resized(s, d, n):
    s = list(s)
    s[d] = n
    return s
