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
    for ord, shape in [(2, (2, 0, 3)), (1, (3, 0)), (1, (0, 3)), (-1, (0, 3)), ("nuc", (0, 3)), (-2, (0, 2, 3))]:
        kit.case(lambda a: torch.linalg.matrix_norm(a, ord), [kit.normal(*shape)], {"ord": ord},
                 differentiate=False)


@operator("matrices", "cond")
def cond(kit):
    for p in [None, 2, -2, "fro", "nuc", 1, -1, float("inf"), -float("inf")]:
        name = p if p is None or isinstance(p, str) or abs(p) <= 2 else str(p)
        # By inverses, PyTorch has no gradient: it changes them in place.
        kit.case(lambda a: torch.linalg.cond(a, p), [regular(kit, 2, 3, 3)], {"p": name},
                 differentiate=p in (None, 2, -2), **SOLVER)
    kit.case(torch.linalg.cond, [regular(kit, 4, 2)], {"p": None}, **SOLVER)
    for p in [1, "fro"]:  # one of them is singular
        kit.case(lambda a: torch.linalg.cond(a, p), [np.float32([[[1, 2], [2, 4]], [[1, 2], [3, 4]]])], {"p": p},
                 differentiate=False, **SOLVER)
    for p in [None, 1, "nuc"]:
        kit.case(lambda a: torch.linalg.cond(a, p), [np.zeros((2, 0, 0), np.float32)], {"p": p},
                 differentiate=False)


# ---- shapes and matrices that further/decomposition.py does not have


def low_rank(kit, *shape):
    """Whole numbers, so that f32 and f64 have the same matrix, of rank 2."""
    *batch, m, n = shape
    return np.float32((kit.integers(9, *batch, m, 2) - 4) @ (kit.integers(9, *batch, 2, n) - 4))


@operator("matrices", "solve")
def solve(kit):
    for a, b in [((2, 3, 3), (2, 3)), ((2, 3, 3), (3,)), ((2, 1, 3, 3), (3, 3, 2)), ((3, 3), (2, 3, 1))]:
        kit.case(torch.linalg.solve, [regular(kit, *a), kit.normal(*b)], **SOLVER)


@operator("matrices", "solve_triangular")
def solve_triangular(kit):
    for a, b, args in [((3, 3), (2, 3, 2), {"upper": True, "unitriangular": True}),
                       ((2, 1, 3, 3), (2, 3), {"upper": False, "left": False, "unitriangular": True})]:
        kit.case(lambda a, b: torch.linalg.solve_triangular(a, b, **args),
                 [regular(kit, *a), kit.normal(*b)], args, **SOLVER)


@operator("matrices", "qr")
def qr(kit):
    """Wide matrices; the signs are those of further/decomposition.py."""
    for shape, mode in [((3, 5), "reduced"), ((2, 2, 4), "complete"), ((4, 4), "complete"), ((1, 3), "reduced")]:

        def positive(x):
            q, r = torch.linalg.qr(x, mode)
            sign = torch.diagonal(r, dim1=-2, dim2=-1).sign().detach()
            return q * sign.unsqueeze(-2), r * sign.unsqueeze(-1)

        kit.case(positive, [regular(kit, *shape)], {"mode": mode}, **SOLVER)


@operator("matrices", "svdvals")
def svdvals(kit):
    for shape in [(3, 5), (2, 2, 4), (1, 4), (0, 3, 2)]:
        kit.case(torch.linalg.svdvals, [kit.normal(*shape)], **SOLVER)
    kit.case(torch.linalg.svdvals, [low_rank(kit, 2, 4, 6)], differentiate=False, **SOLVER)
    kit.case(torch.linalg.svdvals, [np.zeros((3, 2), np.float32)], differentiate=False, **SOLVER)


@operator("matrices", "eigvalsh")
def eigvalsh(kit):
    """One triangle is read; equal eigenvalues."""
    for x in [kit.normal(4, 4), np.float32(np.diag([2, 1, 2, 1])), np.ones((3, 3), np.float32)]:
        for uplo in "LU":
            kit.case(lambda a: torch.linalg.eigvalsh(a, UPLO=uplo), [x], {"UPLO": uplo}, differentiate=False,
                     **SOLVER)


@operator("matrices", "pinv")
def pinv(kit):
    for x, args in [(kit.normal(2, 5), {}), (low_rank(kit, 5, 4), {}), (low_rank(kit, 3, 4), {}),
                    (np.zeros((2, 3), np.float32), {}), (regular(kit, 3, 3), {"atol": 2.5}),
                    (regular(kit, 3, 3), {"rtol": 0.7})]:
        kit.case(lambda a: torch.linalg.pinv(a, **args), [x], args, **SOLVER)
    x = low_rank(kit, 4, 4)
    kit.case(lambda a: torch.linalg.pinv(a, hermitian=True), [x + x.T], {"hermitian": True}, differentiate=False,
             **SOLVER)


@operator("matrices", "lstsq")
def lstsq(kit):
    def case(a, b):
        kit.case(lambda a, b: torch.linalg.lstsq(a, b, driver="gelsd").solution, [a, b], **SOLVER)

    case(kit.normal(2, 5), kit.normal(2, 3))
    case(kit.normal(2, 4, 3), kit.normal(2, 4))
    case(low_rank(kit, 5, 4), kit.normal(5, 1))
    case(low_rank(kit, 3, 5), kit.normal(3, 2))


@operator("matrices", "det")
def det(kit):
    nan = kit.normal(3, 3)
    nan[1, 1] = float("nan")
    for x in [low_rank(kit, 2, 3, 3), np.zeros((2, 2), np.float32), nan]:
        kit.case(torch.linalg.det, [x], differentiate=False, tolerance=(2e-3, 2e-2))


@operator("matrices", "slogdet")
def slogdet(kit):
    for x in [np.float32([[1, 2], [2, 4]]), -regular(kit, 2, 3, 3), np.zeros((2, 0, 0), np.float32)]:
        kit.case(lambda a: tuple(torch.linalg.slogdet(a)), [x], differentiate=False, **SOLVER)
