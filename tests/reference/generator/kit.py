"""What writes a reference case, and the inputs that cases are made of."""
import json
import pathlib
import zlib

import h5py
import numpy as np
import torch


class File:
    """The HDF5 file of a family: numbered groups, one a case."""

    def __init__(self, directory, name):
        self.hdf5 = h5py.File(pathlib.Path(directory) / f"{name}.h5", "w", libver=("v108", "v112"))
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hdf5.close()

    def group(self, op, args, tolerance):
        group = self.hdf5.create_group(f"{self.count:04d}_{op}")
        self.count += 1
        group.attrs["op"] = op
        group.attrs["args"] = json.dumps(args, sort_keys=True)
        group.attrs["rtol"], group.attrs["atol"] = tolerance
        return group


def write_case(file, rng, op, function, inputs, args=None, names=None, differentiate=True,
               tolerance=(1e-4, 1e-5), constant=()):
    """`function(*tensors)` gives a tensor or several; `inputs` are numpy arrays, None for an
    optional one that is not given. Inputs listed in `constant` get no gradient."""
    tensors = []
    for i, x in enumerate(inputs):
        tensor = None if x is None else torch.from_numpy(np.array(x))
        if tensor is not None and tensor.dtype == torch.float32:
            tensor = tensor.double().requires_grad_(differentiate and i not in constant)
        tensors.append(tensor)
    leaves = {i: t for i, t in enumerate(tensors)
              if t is not None and t.dtype == torch.float64 and i not in constant}
    result = function(*tensors)
    results = list(result) if isinstance(result, (tuple, list)) else [result]

    group = file.group(op, args or {}, tolerance)
    names = names or [f"x{i}" for i in range(len(inputs))]
    for i, (name, x) in enumerate(zip(names, inputs)):
        if x is not None:
            group.create_dataset(f"in/{i}", data=x).attrs["name"] = name
    for i, y in enumerate(results):
        group.create_dataset(f"out/{i}", data=y.detach().numpy())
    sources = {i: y for i, y in enumerate(results) if y.is_floating_point() and y.requires_grad}
    if not (differentiate and leaves and sources):
        return
    upstream = {i: np.asarray(rng.randn(*y.shape), np.float32) for i, y in sources.items()}
    gradients = torch.autograd.grad(list(sources.values()), list(leaves.values()),
                                    [torch.from_numpy(g).double() for g in upstream.values()],
                                    allow_unused=True)
    for i, g in upstream.items():
        group.create_dataset(f"gout/{i}", data=g)
    for i, g in zip(leaves, gradients):
        if g is not None:
            group.create_dataset(f"gin/{i}", data=g.detach().numpy())


class Kit:
    """The cases of one operator: inputs from a generator that is seeded by its name."""

    def __init__(self, file, op):
        self.file, self.op = file, op
        self.rng = np.random.RandomState(zlib.crc32(op.encode()))

    def normal(self, *shape):
        return np.asarray(self.rng.randn(*shape), np.float32)

    def uniform(self, low, high, *shape):
        return np.asarray(self.rng.uniform(low, high, shape), np.float32)

    def integers(self, bound, *shape):
        return self.rng.randint(0, bound, shape).astype(np.int64)

    def flags(self, *shape):
        return self.rng.rand(*shape) < 0.5

    def case(self, function, inputs, args=None, **more):
        write_case(self.file, self.rng, self.op, function, inputs, args, **more)
