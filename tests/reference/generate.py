#!/usr/bin/env python3
"""Writes the reference cases of operators: inputs, arguments, results and gradients by PyTorch.

usage: generate.py [DIR]             writes all files into DIR (default: cases/ beside this script)
       generate.py --compare [DIR]   generates again and compares with the files of DIR; exit status 1
                                     where they differ by more than rounding

FORMAT.md in cases/ describes the files. Expected values are computed in float64 from exactly the
float32 inputs that are stored. Needs h5py, numpy and PyTorch 2.15.0 (`pip install torch==2.15.0
h5py`): another version may change a definition, so it is refused unless --any-version is given.

Three kinds of families. Those of generator/sequence.py draw from one generator, seed 1, in the order
of the file: nothing may be inserted there. An operator of generator/operators.py draws from a
generator of its own, seeded by its name: adding one changes no other case. Each family of
generator/further draws from one of its own, in the order of its module.
"""
import argparse
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TORCH = "2.15.0"
ROUNDING = 1e-12  # of the largest value of a dataset


def same_names(old, new, problems, name):
    """The paths of all groups and datasets, the same in both files."""
    a, b = [], []
    old.visit(a.append)
    new.visit(b.append)
    for path in sorted(set(a) ^ set(b)):
        problems.append(f"{name}: {path} is only in the {'old' if path in a else 'new'} file")
    return [path for path in a if path in b]


def compare_file(name, old_path, new_path):
    """A text for each difference of two files."""
    import h5py
    import numpy as np

    problems = []
    with h5py.File(old_path) as old, h5py.File(new_path) as new:
        for path in same_names(old, new, problems, name):
            if dict(old[path].attrs) != dict(new[path].attrs):
                problems.append(f"{name}: attributes of {path} differ")
            if not isinstance(old[path], h5py.Dataset):
                continue
            a, b = old[path][...], new[path][...]
            if a.shape != b.shape or a.dtype != b.dtype:
                problems.append(f"{name}: {path} is {b.dtype} {b.shape}, was {a.dtype} {a.shape}")
                continue
            given = "/in/" in path or "/gout/" in path or path.endswith(("param", "grads"))
            if given or a.dtype.kind != "f":
                same = np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
            else:
                finite = np.isfinite(a)
                largest = np.max(np.abs(a[finite]), initial=0)
                same = np.allclose(a, b, rtol=0, atol=ROUNDING * max(largest, 1), equal_nan=True)
            if not same:
                problems.append(f"{name}: values of {path} differ")
    return problems


def compare(directory, generated):
    names = {p.name for p in directory.glob("*.h5")} | {p.name for p in generated.glob("*.h5")}
    problems = []
    for name in sorted(names):
        old, new = directory / name, generated / name
        if not (old.exists() and new.exists()):
            problems.append(f"{name} is only in {directory if old.exists() else 'what was generated'}")
            continue
        found = compare_file(name, old, new)
        print(f"{name}: {'the same to rounding' if not found else f'{len(found)} differences'}")
        problems += found
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=pathlib.Path, default=HERE / "cases")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--any-version", action="store_true")
    options = parser.parse_args()

    import torch

    if torch.__version__.split("+")[0] != TORCH and not options.any_version:
        sys.exit(f"generate.py: PyTorch {TORCH} is wanted, found {torch.__version__}; install that "
                 "one or give --any-version")
    sys.path.insert(0, str(HERE))
    from generator import further, operators, sequence

    if not options.compare:
        options.directory.mkdir(parents=True, exist_ok=True)
        sequence.write(options.directory)
        operators.write(options.directory)
        further.write(options.directory)
        return
    with tempfile.TemporaryDirectory() as generated:
        sequence.write(pathlib.Path(generated))
        operators.write(pathlib.Path(generated))
        further.write(pathlib.Path(generated))
        problems = compare(options.directory, pathlib.Path(generated))
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
