#!/usr/bin/env python3
"""Prints Tenon's compiled functions beside torch.compile: times of a call as it is and compiled, and what it takes to compile.

compare_compile.py [--build FOLDER] [--filter PATTERN] [--threads N] [--turns N]: run it with a Python that has PyTorch, which needs a C++
compiler for torch.compile. The least times of several turns of both.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

source = Path(__file__).resolve().parent.parent
keys = ("plain_us", "compiled_us", "making_us")


def tenon(options):
    env = dict(os.environ, TENON_NUM_THREADS=str(options.threads))
    command = [options.build / "bench" / "compile_bench", f"--benchmark_filter={options.filter}", "--benchmark_min_time=0.5", "--benchmark_format=json"]
    benchmarks = json.loads(subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout)["benchmarks"]
    return {b["name"].removesuffix("/real_time"): {key: b[key] for key in keys} for b in benchmarks}


def pytorch(options):
    command = [sys.executable, source / "bench" / "torch_compile.py", "--filter", options.filter, "--threads", str(options.threads)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=source / "build" / "release")
    parser.add_argument("--filter", default="compile/")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    sides = ({}, {})
    for _ in range(options.turns):
        for into, times in zip(sides, (tenon(options), pytorch(options))):
            for name, row in times.items():
                best = into.setdefault(name, row)
                into[name] = {key: min(best[key], row[key]) for key in keys}
    print("| subject | Tenon: as it is, compiled | torch: as it is, compiled | Tenon compiled / torch compiled | to compile: Tenon, torch |")
    print("|---|---:|---:|---:|---:|")
    for name in sides[0]:
        if name not in sides[1]:
            continue
        own, other = sides[0][name], sides[1][name]
        print(f"| `{name}` | {own['plain_us']:.1f}, {own['compiled_us']:.1f} µs | {other['plain_us']:.1f}, {other['compiled_us']:.1f} µs | "
              f"{own['compiled_us'] / other['compiled_us']:.2f} | {own['making_us'] / 1e3:.1f} ms, {other['making_us'] / 1e6:.1f} s |")


if __name__ == "__main__":
    main()
