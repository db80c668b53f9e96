"""Matrix decompositions and solvers, on well-conditioned matrices."""

import numpy as np
import torch

from .common import A, Cases, SOLVER, V, coin, f, number, rng, some


def write():
    fam = Cases("decomposition", SOLVER, places=(torch.linalg,))

    def regular(*s):
        """Near a multiple of a permutation matrix: well conditioned, and elimination has to exchange rows."""
        n = s[-1]
        x = 0.5 * rng.randn(*s) / n**0.5 + 1.5 * np.eye(n)
        return np.asarray(x[..., rng.permutation(n), :], np.float32)

    def tall(*s):
        return np.asarray(
            0.4 * rng.randn(*s) / s[-2] ** 0.5 + 1.5 * np.eye(s[-2], s[-1])[rng.permutation(s[-2])],
            np.float32,
        )

    def positive(*s):
        x = rng.randn(*s) / s[-1] ** 0.5
        x = (x @ np.swapaxes(x, -1, -2) + np.eye(s[-1])).astype(np.float32)
        return np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2)

    def triangle(upper, *s):
        x = (np.triu if upper else np.tril)(0.3 * rng.randn(*s)) + np.eye(s[-1]) * rng.uniform(
            1, 2, s[-1]
        )
        return x.astype(np.float32)

    def qr_positive(x):
        q, r = torch.linalg.qr(x)
        sign = torch.diagonal(r, dim1=-2, dim2=-1).sign().detach()
        return q * sign.unsqueeze(-2), r * sign.unsqueeze(-1)

    def slogdet(x):
        sign, logabsdet = torch.linalg.slogdet(x)
        return sign.detach(), logabsdet

    for _ in V:
        for batch in ([], [number(1, 4)]):
            n = number(1, 8 if A.hard else 6)
            k = number(1, 4)
            m = n + number(0, 4)
            s = batch + [n, n]
            fam.add("cholesky", [positive(*s)], {"upper": coin()})
            left = coin()
            fam.add(
                "solve",
                [regular(*s), f(batch + ([n, k] if left else [k, n]))],
                {"left": left},
                "A B",
            )
            a = {"upper": coin(), "left": coin(), "unitriangular": coin(0.3)}
            fam.add(
                "solve_triangular",
                [triangle(a["upper"], *s), f(batch + ([n, k] if a["left"] else [k, n]))],
                a,
                "A B",
            )
            fam.add("inv", [regular(*s)], {}, "A")
            fam.add("det", [regular(*s)], {}, "A")
            fam.add("slogdet", [regular(*s)], {}, "A", slogdet)
            fam.add("qr", [tall(*batch, m, n)], {"mode": "reduced"}, "A", qr_positive)
            fam.add("svdvals", [tall(*batch, m, n)], {}, "A")
            fam.add("eigvalsh", [positive(*s)], {"UPLO": some("L", "U")}, "A")
            fam.add(
                "lstsq",
                [tall(*batch, m, n), f(*batch, m, k)],
                {},
                "A B",
                lambda x, y: torch.linalg.lstsq(x, y).solution,
            )
            power = some(2, 3, 5)
            fam.add(
                "matrix_power",
                [regular(*s)],
                {"n": power},
                "A",
                lambda x: torch.linalg.matrix_power(x, power),
                tol=(2e-3, 1e-2),
            )
            fam.add(
                "matrix_power",
                [regular(*s)],
                {"n": -2},
                "A",
                lambda x: torch.linalg.matrix_power(x, -2),
            )
            fam.add("pinv", [tall(*batch, m, n)], {}, "A")
        fam.add("solve", [regular(4, 4), f(4)], {"left": True}, "A B")
    fam.close(fam.name)
