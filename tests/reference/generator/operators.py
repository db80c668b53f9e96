"""Reference cases of operators that were added one by one.

A function a family's operator, marked with its file and name. Each draws its inputs from a generator
of its own, so that adding an operator, or a case to one, changes no other operator's cases:

    @operator("reduction", "logsumexp")
    def logsumexp(kit):
        kit.case(lambda x: torch.logsumexp(x, [1]), [kit.normal(3, 4)], {"dim": [1]})
"""
import torch

from .kit import File, Kit

OPERATORS = {}  # file: [(operator, function)]


def operator(file, name):
    def register(function):
        OPERATORS.setdefault(file, []).append((name, function))
        return function

    return register


@operator("reduction", "logsumexp")
def logsumexp(kit):
    def case(x, dim, keepdim):
        kit.case(lambda t: torch.logsumexp(t, dim, keepdim), [x], {"dim": dim, "keepdim": keepdim})

    case(kit.normal(4, 5), [1], False)
    case(kit.normal(4, 5), [0], True)
    case(kit.normal(2, 3, 4), [0, 2], False)
    case(kit.normal(2, 3, 4), [0, 1, 2], True)
    case(kit.normal(7, 1), [-1], False)  # a single element is itself
    case(kit.normal(3, 131) * 50, [1], False)  # exp alone would overflow
    x = kit.normal(4, 5)
    x[0] = -float("inf")  # nothing: -inf, whose gradient is NaN
    x[1, 2] = -float("inf")
    x[2, 4] = float("inf")
    x[3, 0] = float("nan")
    case(x, [1], False)


def write(directory):
    """Writes the file of every family into the directory."""
    from . import order  # noqa: F401, registers its operators

    for name, members in OPERATORS.items():
        with File(directory, name) as file:
            for op, function in members:
                function(Kit(file, op))
            print(f"{name}: {file.count} cases")
