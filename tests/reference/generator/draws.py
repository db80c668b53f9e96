"""What the families of sequence.py share: one generator of random numbers, and the inputs drawn from
it."""
import numpy as np

from .kit import File, write_case

SEED = 1
VARIANTS = range(2)  # of most cases; `MORE` of those with more to vary
MORE = range(4)

rng = np.random.RandomState(SEED)
LOOSE = (1e-3, 1e-4)  # relative and absolute, for long sums


class Family:
    def __init__(self, directory, name):
        self.file, self.name = File(directory, name), name

    def __enter__(self):
        return self.case

    def __exit__(self, *_):
        self.file.__exit__()
        print(f"{self.name}: {self.file.count} cases")

    def case(self, op, function, inputs, args=None, names=None, diff=True, tol=(1e-4, 1e-5),
             constant=()):
        write_case(self.file, rng, op, function, inputs, args, names, diff, tol, constant)


# ---- inputs


def shape(low=1, high=4, most=7):
    return [int(rng.randint(1, most + 1)) for _ in range(rng.randint(low, high + 1))]


def normal(*sizes):
    sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes
    return np.asarray(rng.randn(*sizes), np.float32)


def uniform(low, high, *sizes):
    sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes
    return np.asarray(rng.uniform(low, high, sizes), np.float32)


def distinct(*sizes):
    """No two elements are equal: maxima and order are defined."""
    sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes
    n = int(np.prod(sizes))
    return ((rng.permutation(n) - n / 2) / max(n, 1) * 4).astype(np.float32).reshape(sizes)


def integers(bound, *sizes):
    return rng.randint(0, bound, sizes).astype(np.int64)


def number(low, high):
    return int(rng.randint(low, high))


def chance(p=0.5):
    return bool(rng.rand() < p)


def broadcast_pair():
    sizes = shape(1, 4)
    a, b = list(sizes), list(sizes)
    for i in range(len(sizes)):
        r = rng.rand()
        if r < 0.25:
            a[i] = 1
        elif r < 0.5:
            b[i] = 1
    if rng.rand() < 0.3:
        b = b[rng.randint(len(b)):]
    return (a, b) if rng.rand() < 0.5 else (b, a)
