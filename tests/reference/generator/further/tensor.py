"""Products, construction, rearrangement, distances."""

import torch
import torch.nn.functional as F

from .common import Cases, LOOSE, V, coin, f, ints, number, rng, sh, shape, some


def write():
    fam = Cases("tensor")
    for v in V:
        m, k, n, b = number(1, 6), number(1, 6), number(1, 6), number(1, 4)
        for equation, shapes in [
            ("ij,jk->ik", [(m, k), (k, n)]),
            ("bij,bkj->bik", [(b, m, k), (b, n, k)]),
            ("ij->ji", [(m, k)]),
            ("ii->i", [(n, n)]),
            ("i,j", [(m,), (n,)]),
            ("bi,ij,bj->b", [(b, m), (m, k), (b, k)]),
            ("...ij,jk->...ik", [(2, b, m, k), (k, n)]),
            ("bhld,bhmd->bhlm", [(b, 2, m, k), (b, 2, n, k)]),
        ]:
            fam.add(
                "einsum",
                [f(*t) for t in shapes],
                {"equation": equation},
                " ".join(f"operands.{i}" for i in range(len(shapes))),
                lambda *t: torch.einsum(equation, *t),
            )
        fam.add("outer", [f(m), f(n)], {}, "input vec2")
        fam.add("dot", [f(k), f(k)], {}, "input tensor")
        fam.add("mv", [f(m, k), f(k)], {}, "input vec")
        scale = {"beta": some(1.0, 0.5, 0.0), "alpha": some(1.0, -2.0)}
        fam.add("addmm", [f(some([m, n], [n], [1, n])), f(m, k), f(k, n)], scale, "input mat1 mat2")
        fam.add(
            "baddbmm",
            [f(some([b, m, n], [m, n], [n])), f(b, m, k), f(b, k, n)],
            scale,
            "input batch1 batch2",
        )
        fam.add("tensordot", [f(m, k, n), f(k, n, b)], {"dims": 2}, "a b")
        fam.add("tensordot", [f(m, k, n), f(n, b, m)], {"dims": [[0, 2], [2, 0]]}, "a b")
        fam.add("kron", [f(2, m), f(n, 3)], {}, "input other")
        fam.add("cross", [f(m, 3), f(m, 3)], {"dim": 1}, "input other")
        fam.add("cross", [f(3, n), f(3, n)], {"dim": 0}, "input other")
        s = sh(2, 4)
        d, e = (int(i) for i in rng.permutation(len(s))[:2])
        fam.add("roll", [f(s)], {"shifts": [number(-4, 5), 1], "dims": [d, e]})
        fam.add("roll", [f(s)], {"shifts": number(-4, 5)})
        fam.add("flip", [f(s)], {"dims": [d, e - len(s)]})
        fam.add("rot90", [f(s)], {"k": number(-2, 4), "dims": [d, e]})
        for op in ("tril", "triu"):
            fam.add(op, [f(s)], {"diagonal": number(-2, 3)})
        s = shape(2, 4, 5)
        d, e = (int(i) for i in rng.permutation(len(s))[:2])
        fam.add("diag", [f(n)], {"diagonal": number(-2, 3)})
        fam.add("diag", [f(m + 2, n + 2)], {"diagonal": number(-2, 3)})
        fam.add("diagonal", [f(s)], {"offset": number(1 - s[d], s[e]), "dim1": d, "dim2": e})
        fam.add(
            "diag_embed",
            [f(m, k)],
            dict(
                zip(("offset", "dim1", "dim2"), some((0, -2, -1), (1, 0, 2), (-2, 1, 2), (1, 2, 0)))
            ),
        )
        fam.add("trace", [f(m, n)])
        fam.add("repeat_interleave", [f(s)], {"repeats": 2, "dim": d})
        fam.add("repeat_interleave", [f(s)], {"repeats": 3})
        fam.add("repeat_interleave", [f(s), ints(4, s[d])], {"dim": d}, "input repeats")
        for indexing in ("ij", "xy"):
            fam.add(
                "meshgrid",
                [f(m), f(n), f(2)],
                {"indexing": indexing},
                "tensors.0 tensors.1 tensors.2",
                lambda *t: torch.meshgrid(*t, indexing=indexing),
            )
        for i, mode in enumerate(("constant", "reflect", "replicate", "circular")):
            nd = 1 + (v + i) % 3
            a = {
                "pad": [number(-1 if mode == "constant" else 0, 4) for _ in range(2 * nd)],
                "mode": mode,
            }
            if mode == "constant":
                a["value"] = 0.5
            fam.add("pad", [f(*[1, 2, 4, 5, 4][: nd + 2])], a, fn=lambda x: F.pad(x, **a))
        a = {
            "kernel_size": [number(1, 4), 2],
            "dilation": [1, number(1, 3)],
            "padding": [1, number(0, 2)],
            "stride": [number(1, 3), 2],
        }
        fam.add("unfold", [f(2, 2, 5, 6)], a, fn=lambda x: F.unfold(x, **a))
        blocks = F.unfold(torch.zeros(1, 2, 5, 6), **a).shape
        fam.add("fold", [f(2, *blocks[1:])], dict(a, output_size=[5, 6]))
        source, destination = some((0, -1), ([0, 2], [3, 1]), ([-1, 1], [0, 2]))
        fam.add("movedim", [f(2, m, 3, n)], {"source": source, "destination": destination})
        fam.add("tile", [f(m, n)], {"dims": some([2], [2, 3], [2, 1, 2])})
        fam.add("unbind", [f(s)], {"dim": d - len(s)})
        fam.add("hstack", [f(m, n), f(m, k)], {}, "tensors.0 tensors.1", lambda *t: torch.hstack(t))
        fam.add("hstack", [f(n), f(k)], {}, "tensors.0 tensors.1", lambda *t: torch.hstack(t))
        fam.add(
            "vstack",
            [f(m, n), f(n), f(k, n)],
            {},
            "tensors.0 tensors.1 tensors.2",
            lambda *t: torch.vstack(t),
        )
        fam.add("broadcast_to", [f(m, 1, n)], {"size": [2, m, 3, n]})
        for p in (1.0, 2.0, 3.0):
            fam.add("cdist", [f(m, k + 1), f(n, k + 1)], {"p": p}, "x1 x2", tol=LOOSE)
        fam.add(
            "cdist",
            [f(b, m, k), f(b, n, k)],
            {"p": "inf"},
            "x1 x2",
            lambda x, y: torch.cdist(x, y, float("inf")),
        )
        fam.add("cosine_similarity", [f(m, k + 1), f(m, k + 1)], {"dim": 1, "eps": 1e-8}, "x1 x2")
        fam.add(
            "cosine_similarity", [f(b, m + 1, 3), f(m + 1, 1)], {"dim": -2, "eps": 1e-8}, "x1 x2"
        )
        fam.add(
            "pairwise_distance",
            [f(m, k), f(m, k)],
            {"p": some(1.0, 2.0, 3.0), "eps": 1e-6, "keepdim": coin()},
            "x1 x2",
        )
    fam.close(fam.name)
