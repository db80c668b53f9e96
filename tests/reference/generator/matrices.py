"""Cases of what is solved with decompositions, beside those of further/decomposition.py."""
import numpy as np
import torch

from .operators import operator

SOLVER = {"tolerance": (2e-3, 2e-3)}


def regular(kit, *shape):
    """Matrices that are far from singular."""
    return kit.normal(*shape) + np.float32(3) * np.eye(shape[-2], shape[-1], dtype=np.float32)


@operator("matrices", "cholesky_solve")
def cholesky_solve(kit):
    def case(b, a, upper):
        # The gradient of the factor has values in the triangle that PyTorch does not read.
        kit.case(lambda b, l: torch.cholesky_solve(b, l, upper=upper), [b, a], {"upper": upper}, constant=(1,),
                 **SOLVER)

    case(kit.normal(3, 2), np.tril(regular(kit, 3, 3)), False)
    case(kit.normal(2, 4, 1), np.triu(regular(kit, 2, 4, 4)), True)


@operator("matrices", "lu_solve")
def lu_solve(kit):
    for shape, left, adjoint in [((3, 3), True, False), ((2, 4, 4), True, True), ((4, 4), False, False),
                                 ((2, 3, 3), False, True)]:
        n = shape[-1]
        b = kit.normal(*shape[:-2], *((n, 2) if left else (2, n)))

        def solved(a, b):
            lu, pivots = torch.linalg.lu_factor(a)
            return torch.linalg.lu_solve(lu, pivots, b, left=left, adjoint=adjoint)

        kit.case(solved, [regular(kit, *shape), b], {"left": left, "adjoint": adjoint}, **SOLVER)


@operator("matrices", "lu_factor")
def lu_factor(kit):
    """The factors; the pivots follow from them."""
    for shape in [(3, 3), (2, 5, 3), (3, 5), (1, 4)]:
        kit.case(lambda a: torch.linalg.lu_factor(a)[0], [regular(kit, *shape)], **SOLVER)


@operator("matrices", "logdet")
def logdet(kit):
    x = regular(kit, 3, 4, 4)
    x = x @ x.transpose(0, 2, 1)
    kit.case(torch.logdet, [x], **SOLVER)
    kit.case(torch.logdet, [np.asarray([[2]], np.float32)], **SOLVER)


@operator("matrices", "matrix_rank")
def matrix_rank(kit):
    x = np.float32(kit.integers(9, 2, 4, 2) @ kit.integers(9, 2, 2, 5))  # without rounding
    for args in [{}, {"atol": 1e-3}, {"rtol": 0.9}, {"atol": 0.1, "rtol": 0.2}]:
        kit.case(lambda a: torch.linalg.matrix_rank(a, **args), [x], args, differentiate=False)
    s = np.float32(kit.integers(9, 4, 2))
    kit.case(lambda a: torch.linalg.matrix_rank(a, rtol=1e-4, hermitian=True), [s @ s.T],
             {"rtol": 1e-4, "hermitian": True}, differentiate=False)


@operator("matrices", "matrix_norm")
def matrix_norm(kit):
    inf = float("inf")
    for ord, shape, dim, keepdim in [
        ("fro", (3, 4), [-2, -1], False), ("nuc", (3, 4), [-2, -1], False), ("nuc", (2, 3, 4), [0, 2], True),
        (2, (4, 3), [-2, -1], False), (-2, (2, 3, 4), [1, 0], True), (1, (2, 3, 4), [-2, -1], True),
        (-1, (2, 3, 4), [2, 0], False), (inf, (2, 3, 4), [0, 2], False), (-inf, (2, 3, 4), [2, 1], True),
        (inf, (3, 4), [-2, -1], False), (1, (4, 3), [0, 1], False),
    ]:
        name = ord if isinstance(ord, str) or abs(ord) != inf else str(ord)
        kit.case(lambda a: torch.linalg.matrix_norm(a, ord, dim, keepdim), [kit.normal(*shape)],
                 {"ord": name, "dim": dim, "keepdim": keepdim}, **SOLVER)


@operator("matrices", "cond")
def cond(kit):
    for p in [None, 2, -2, "fro", "nuc", 1, -1, float("inf"), -float("inf")]:
        name = p if p is None or isinstance(p, str) or abs(p) <= 2 else str(p)
        # By inverses, PyTorch has no gradient: it changes them in place.
        kit.case(lambda a: torch.linalg.cond(a, p), [regular(kit, 2, 3, 3)], {"p": name},
                 differentiate=p in (None, 2, -2), **SOLVER)
    kit.case(torch.linalg.cond, [regular(kit, 4, 2)], {"p": None}, **SOLVER)
