"""Runs the benchmarks and the same work in PyTorch, turn by turn, and prints the ratios. Called by `./dev bench`."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

source = Path(__file__).resolve().parent.parent

# Highest ratio (Tenon / PyTorch, wall time) that is wanted; 1 where nothing else is said.
targets = {"training/lenet_256": 0.8, "training/mlp_256": 1.0, "training/mlp_forward_1": 0.5, "dispatch/add_1": 0.5,
           "dispatch/add_1_grad": 0.5, "pointwise/x*2+1": 0.25, "models/resnet18_32": 0.9, "models/chargpt_32": 0.7, "recurrent/lstm_step": 0.9}
mean_target = 0.40  # of all ratios, geometrically
library_megabytes = 12
groups = ["dispatch", "pointwise", "copy", "random", "reduce", "matmul", "conv", "pool", "softmax", "attention", "recurrent", "loss", "norm", "index", "optimizer",
          "training", "models", "checkpoint"]


def run(command, **options):
    result = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, **options)
    if result.returncode:
        sys.exit(f"bench: {command[0]} ended with {result.returncode}")
    return result.stdout


def tenon_times(programs, pattern, seconds, environment, ratios=True):
    """Seconds by subject; of subjects that compare two ways within Tenon their ratio, unless these are left out."""
    times = {}
    for program in programs:
        text = run([program, f"--benchmark_filter={pattern}", f"--benchmark_min_time={seconds}", "--benchmark_format=json"],
                   env=environment, stderr=subprocess.DEVNULL)
        # A program without a subject of this pattern prints no JSON.
        if text.strip().startswith("{"):
            for b in json.loads(text)["benchmarks"]:
                if b.get("error_occurred"):
                    sys.exit(f"bench: {b['name']}: {b.get('error_message')}")
                name = b["name"].removesuffix("/real_time").split("/iterations:")[0]
                # A ratio within Tenon, or the time of a unit of work. What has neither measures itself, with figures of its own.
                if "ratio" in b:
                    if ratios:
                        times[name] = b["ratio"]
                elif "items_per_second" in b:
                    times[name] = 1 / b["items_per_second"]
    return times


def build_libtorch(build):
    """The LibTorch yardstick, or None where it cannot be built."""
    import torch
    program = build / "bench" / "libtorch_add"
    main = source / "bench" / "libtorch_add.cpp"
    if program.exists() and program.stat().st_mtime > main.stat().st_mtime:
        return program
    root = Path(torch.__file__).parent
    result = subprocess.run(
        ["c++", "-std=c++20", "-O2", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}", f"-I{root}/include",
         f"-I{root}/include/torch/csrc/api/include", str(main), "-o", str(program), f"-L{root}/lib", "-Wl,--no-as-needed", "-ltorch_cpu",
         "-ltorch", "-lc10", "-Wl,--as-needed", f"-Wl,-rpath,{root}/lib"], capture_output=True, text=True)
    if result.returncode:
        print(f"bench: LibTorch could not be built, Python's numbers stand in for it:\n{result.stderr[-2000:]}", file=sys.stderr)
        return None
    return program


def is_ratio(name):
    """Whether a subject compares two ways within Tenon in training_bench."""
    return name.startswith(("training/wrapper_overhead", "training/profiler_overhead"))


def human(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def verdict(value, target):
    return "pass" if value <= target else "MISS"


def compare(options, environment):
    programs = sorted((options.build / "bench").glob("*_bench"))
    libtorch = build_libtorch(options.build)
    tenon, torch_ = {}, {}

    def keep(into, times):
        for name, seconds in times.items():
            into.setdefault(name, []).append(seconds)
    chosen = [g for g in groups if not options.group or g in options.group]
    for round_ in range(options.rounds):
        for group in chosen:
            print(f"\rround {round_ + 1}/{options.rounds}: {group:12}", end="", file=sys.stderr, flush=True)
            keep(tenon, tenon_times(programs, f"^{group}/", options.seconds, environment))
            times = json.loads(run([sys.executable, source / "bench" / "torch_bench.py", "--filter", f"^{group}/", "--seconds",
                                    options.seconds, "--threads", options.threads], stderr=subprocess.DEVNULL))
            if group == "dispatch" and libtorch:
                times.update(json.loads(run([libtorch])))
            keep(torch_, times)
    print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    # The machine is shared and never faster than it is: the least of several turns is the fairest time. A ratio has no such bound.
    least = {n: statistics.median(t) if is_ratio(n) else min(t) for n, t in tenon.items()}
    return least, {n: min(t) for n, t in torch_.items()}


def include_seconds(build):
    """Compile time of a file that includes tenon/tenon.h, at -O2."""
    with tempfile.TemporaryDirectory() as folder:
        main = Path(folder) / "main.cpp"
        shutil.copy(source / "bench" / "hello.cpp", main)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            run(["c++", "-std=c++20", "-O2", f"-I{source}/include", "-c", main, "-o", Path(folder) / "main.o"])
            times.append(time.perf_counter() - start)
        return min(times)


def startup_seconds(build, environment):
    times = []
    for _ in range(10):
        start = time.perf_counter()
        run([build / "bench" / "hello"], env=environment)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def stripped_bytes(build):
    """libtenon and the cpu plugin's largest variant, and all variants together."""
    with tempfile.TemporaryDirectory() as folder:
        def size(path):
            run(["strip", "-o", Path(folder) / "stripped", path])
            return (Path(folder) / "stripped").stat().st_size
        library = size(next((build / "lib").glob("libtenon.so.*.*.*")))
        variants = [size(p) for p in (build / "lib/tenon/plugins").glob("libtenon_cpu_*.so")]
        return library + max(variants), library + sum(variants)


def clean_build_seconds(threads):
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, CCACHE_DISABLE="1")
        start = time.perf_counter()
        run(["cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DTENON_BUILD_TESTS=OFF",
             "-DTENON_BUILD_BENCH=OFF"], env=environment)
        run(["cmake", "--build", folder, "-j", threads], env=environment)
        return time.perf_counter() - start


def raw_write_seconds(megabytes=100):
    """Writing and syncing as many bytes as the checkpoint has, in the same folder."""
    block = os.urandom(1 << 20)
    times = []
    for _ in range(5):
        with tempfile.NamedTemporaryFile(dir=os.environ.get("TMPDIR", "/tmp")) as file:
            start = time.perf_counter()
            for _ in range(megabytes):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - start)
    return min(times)


def raw_read_seconds(megabytes=105):
    """Reading as many bytes as the checkpoint has, into memory that is used again, while the system has them in its cache."""
    block, times = bytearray(1 << 20), []
    with tempfile.NamedTemporaryFile(dir=os.environ.get("TMPDIR", "/tmp")) as file:
        for _ in range(megabytes * 1_000_000 >> 20):
            file.write(block)
        file.flush()
        for _ in range(9):
            with open(file.name, "rb", buffering=0) as same:
                start = time.perf_counter()
                while same.readinto(block):
                    pass
                times.append(time.perf_counter() - start)
    return min(times)


def print_table(tenon, torch_):
    print(f"\n| {'subject':32} | {'Tenon':>9} | {'PyTorch':>9} | {'ratio':>6} | {'target':>6} |      |")
    print(f"|{'-' * 34}|{'-' * 10}:|{'-' * 10}:|{'-' * 7}:|{'-' * 7}:|------|")
    ratios, missed = {}, 0
    for name in sorted(tenon, key=lambda n: (groups.index(n.split("/")[0]), n)):
        if name not in torch_:
            continue
        ratio, target = tenon[name] / torch_[name], targets.get(name, 1.0)
        ratios[name] = ratio
        missed += ratio > target
        print(f"| {name:32} | {human(tenon[name]):>9} | {human(torch_[name]):>9} | {ratio:6.2f} | {target:6.2f} | {verdict(ratio, target)} |")
    return ratios, missed


def print_ratios(ratios):
    """The geometric mean, and what PyTorch is faster at."""
    if not ratios:
        return
    mean = statistics.geometric_mean(ratios.values())
    print(f"\nGeometric mean of {len(ratios)} ratios: {mean:.2f}, wanted: {mean_target:.2f} ({verdict(mean, mean_target)})")
    slower = sorted((name for name, ratio in ratios.items() if ratio > 1), key=lambda name: -ratios[name])
    print("Above 1.0: " + (", ".join(f"{name} {ratios[name]:.2f}" for name in slower) or "none"))


def print_figures(options, tenon, environment):
    """What has a limit of its own instead of a counterpart in PyTorch."""
    rows = []

    def row(name, value, limit, text, limit_text):
        rows.append((name, text, limit_text, verdict(value, limit)))
    if "dispatch/queue_10000" in tenon:
        row("queued x = x + 1, each", tenon["dispatch/queue_10000"], 1.5e-6, human(tenon["dispatch/queue_10000"]), "1.5 µs")
    if "training/wrapper_overhead" in tenon:
        ratio = tenon["training/wrapper_overhead"]
        row("DataParallel on one device / plain", ratio, 1.02, f"{ratio:.3f}", "1.02")
    for model in ("lenet_64", "mlp_64", "mlp_1"):
        if (name := f"training/profiler_overhead/{model}") in tenon:
            row(f"recorded by a profiler / plain, {model}", tenon[name], 1.05, f"{tenon[name]:.3f}", "1.05")
    if "checkpoint/save_100MB" in tenon:
        ratio = raw_write_seconds() / tenon["checkpoint/save_100MB"]
        row("checkpoint save, of raw write speed", -ratio, -0.9, f"{ratio:.2f}", "≥ 0.9")
    if "checkpoint/load_100MB" in tenon:
        ratio = raw_read_seconds() / tenon["checkpoint/load_100MB"]
        row("checkpoint load, of raw read speed", -ratio, -0.9, f"{ratio:.2f}", "≥ 0.9")
    seconds = startup_seconds(options.build, environment)
    row("program that prints a tensor", seconds, 0.02, human(seconds), "20 ms")
    seconds = include_seconds(options.build)
    row("file with tenon/tenon.h at -O2", seconds, 2, human(seconds), "2 s")
    one, all_ = stripped_bytes(options.build)
    row("library and cpu plugin, stripped", one, library_megabytes * 1e6, f"{one / 1e6:.1f} MB", f"{library_megabytes} MB")
    row("… and all its variants", all_, 15e6, f"{all_ / 1e6:.1f} MB", "15 MB")
    if options.clean_build:
        seconds = clean_build_seconds(options.threads)
        row("clean CPU-only build", seconds, 300, f"{seconds:.0f} s", "300 s")
    print(f"\n| {'figure':36} | {'value':>9} | {'limit':>8} |      |\n|{'-' * 38}|{'-' * 10}:|{'-' * 9}:|------|")
    for name, text, limit, mark in rows:
        print(f"| {name:36} | {text:>9} | {limit:>8} | {mark} |")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side; the least time of all counts")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each subject in each turn")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1), help="for both sides")
    parser.add_argument("--group", action="append", choices=groups, help="only this group (may be given again)")
    parser.add_argument("--clean-build", action="store_true", help="time a clean build too")
    parser.add_argument("--quick", action="store_true", help="two short turns")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 2, 0.05
    environment = dict(os.environ, TENON_NUM_THREADS=str(options.threads))
    tenon, torch_ = compare(options, environment)
    ratios, missed = print_table(tenon, torch_)
    print_figures(options, tenon, environment)
    print_ratios(ratios)
    print(f"\n{options.threads} threads on both sides; the least of {options.rounds} alternating turns; {missed} ratios above their target.")


if __name__ == "__main__":
    main()
