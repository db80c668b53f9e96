#!/usr/bin/env python3
"""Prints bench/onednn_bench with the onednn overlay, without it, and oneDNN called directly.

compare_onednn.py PROGRAM [FILTER] [--threads N] [--turns N]: the least times of several turns.
"""
import argparse
import json
import os
import subprocess

MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}


def run(args, side, settings):
    threads = str(args.threads)
    env = dict(os.environ, TENON_NUM_THREADS=threads, OMP_NUM_THREADS=threads, **settings)
    command = [args.program, f"--benchmark_filter=^{side}/{args.filter}", "--benchmark_min_time=0.05", "--benchmark_format=json"]
    report = json.loads(subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE).stdout)
    return {b["name"].removesuffix("/real_time").split("/", 1)[1]: b["real_time"] * MICROSECONDS[b["time_unit"]]
            for b in report["benchmarks"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    sides = {"overlay": ("tenon", {}), "cpu": ("tenon", {"TENON_DISABLE": "onednn"}), "direct": ("direct", {})}
    least = {}
    for _ in range(args.turns):
        for name, (side, settings) in sides.items():
            for subject, time in run(args, side, settings).items():
                row = least.setdefault(subject, {})
                row[name] = min(time, row.get(name, time))
    print("| subject | overlay µs | cpu µs | oneDNN µs | overlay / cpu | overlay / oneDNN |\n|---|---:|---:|---:|---:|---:|")
    for subject, t in least.items():
        print(f"| {subject} | {t['overlay']:.1f} | {t['cpu']:.1f} | {t['direct']:.1f} | {t['overlay'] / t['cpu']:.2f} | {t['overlay'] / t['direct']:.2f} |")


if __name__ == "__main__":
    main()
