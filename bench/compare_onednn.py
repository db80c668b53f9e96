#!/usr/bin/env python3
"""Prints the times of a benchmark with the onednn overlay and without it, and those of oneDNN called directly where the program
has them (onednn_bench).

compare_onednn.py PROGRAM [FILTER] [--threads N] [--turns N]: the least times of several turns. FILTER is a pattern of what comes after
"tenon/" and "direct/" in onednn_bench, and of whole names in other programs. "direct": oneDNN on memory in the layouts that it likes
best, of a product with the second operand in rows or in its own layout, whichever is faster; "rows": on row-major tensors, which are
copied to those layouts and back, or not, whichever is faster.
"""
import argparse
import json
import os
import subprocess


def run(args, prefix, settings):
    threads = str(args.threads)
    env = dict(os.environ, TENON_NUM_THREADS=threads, OMP_NUM_THREADS=threads, **settings)
    command = [args.program, f"--benchmark_filter=^{prefix}{args.filter}", "--benchmark_min_time=0.05", "--benchmark_format=json"]
    text = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    benchmarks = json.loads(text)["benchmarks"] if text.strip().startswith("{") else []
    # Without the settings of a benchmark in its name. A ratio within one program is no time.
    return {b["name"].split("/real_time")[0].split("/iterations:")[0].removeprefix(prefix): 1e6 / b["items_per_second"]
            for b in benchmarks if "ratio" not in b}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    own = "tenon/" if os.path.basename(args.program) == "onednn_bench" else ""
    sides = {"overlay": (own, {}), "cpu": (own, {"TENON_DISABLE": "onednn"})}
    if own:
        sides |= {"direct": ("direct/", {}), "direct, packed": ("packed/", {}), "rows": ("rows/", {}), "rows, as they are": ("plain/", {})}
    least = {}
    for _ in range(args.turns):
        for name, (prefix, settings) in sides.items():
            for subject, time in run(args, prefix, settings).items():
                row, column = least.setdefault(subject, {}), name.split(",")[0]
                row[column] = min(time, row.get(column, time))
    names = [name for name in sides if "," not in name]
    columns = ["subject", *(f"{name} µs" for name in names), *(f"overlay / {name}" for name in names[1:])]
    print("| " + " | ".join(columns) + " |\n|---|" + "---:|" * (len(columns) - 1))
    for subject, t in least.items():
        cells = [f"{t[name]:.1f}" if name in t else "" for name in names]
        cells += [f"{t['overlay'] / t[name]:.2f}" if name in t else "" for name in names[1:]]
        print("| " + " | ".join([subject, *cells]) + " |")


if __name__ == "__main__":
    main()
