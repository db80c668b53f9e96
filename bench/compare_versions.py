"""Runs the benchmarks of two builds of Tenon, turn by turn, and prints the ratio of the least times, new / old.

usage: python3 bench/compare_versions.py [--rounds N] [--seconds S] [--programs NAME,…] OLD_BUILD NEW_BUILD [FILTER]

OLD_BUILD and NEW_BUILD are build folders (build/release); FILTER is a regular expression of names of subjects, all without it. A
subject that only one of them has is left out and counted. Exits with 1 where a ratio is above --limit (1.05), so that the same
command tells whether a version has become slower.
"""
import argparse
import math
import os
import sys
from pathlib import Path

from compare import tenon_times

programs = ["dispatch_bench", "kernels_bench", "training_bench", "checkpoint_bench"]


def measure(build, names, pattern, seconds, environment):
    found = [build / "bench" / name for name in names if (build / "bench" / name).exists()]
    if not found:
        sys.exit(f"bench: there are none of {', '.join(names)} in {build / 'bench'}")
    return tenon_times(found, pattern, seconds, environment, ratios=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("filter", nargs="?", default=".")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.1, help="time of a subject in one turn")
    parser.add_argument("--programs", default=",".join(programs))
    parser.add_argument("--limit", type=float, default=1.05)
    options = parser.parse_args()
    environment = {"TENON_NUM_THREADS": "2", **os.environ}
    least = {"old": {}, "new": {}}
    for turn in range(options.rounds):
        # Each side is the first in every other turn.
        for side in ("old", "new") if turn % 2 == 0 else ("new", "old"):
            times = measure(getattr(options, side), options.programs.split(","), options.filter, options.seconds, environment)
            for name, time in times.items():
                least[side][name] = min(time, least[side].get(name, math.inf))
    both = [name for name in least["old"] if name in least["new"]]
    if not both:
        sys.exit(f"bench: no subject of both builds matches '{options.filter}'")
    print(f"| subject, least of {options.rounds} turns | old | new | new / old |\n|---|---:|---:|---:|")
    slower = []
    for name in both:
        old, new = least["old"][name], least["new"][name]
        if new / old > options.limit:
            slower.append(name)
        print(f"| {name} | {old * 1e6:.4g} µs | {new * 1e6:.4g} µs | {new / old:.2f}{' SLOWER' if name in slower else ''} |")
    mean = math.exp(sum(math.log(least["new"][n] / least["old"][n]) for n in both) / len(both))
    alone = len(least["old"]) + len(least["new"]) - 2 * len(both)
    print(f"\n{len(both)} subjects, geometric mean of new / old {mean:.2f}; {len(slower)} above {options.limit}; {alone} of one build alone")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
