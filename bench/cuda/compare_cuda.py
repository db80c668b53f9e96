"""Sets cuda_bench beside PyTorch and beside the device's own ceilings, and prints the ratios. Called by gpu-proof; needs nothing but
Python for the ceilings, PyTorch for the rest. Exit status: 0 where every figure is kept, 4 where one is missed or lacks what it is
measured against."""
import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

# The most that Tenon's time may be, with PyTorch's eager time as 1.
targets = {f"training/lenet_256{how}_{precision}": most for precision in ("tf32", "f32") for how, most in (("", 0.6), ("_captured", 0.35))}
# The least share of the ceiling that must be reached; bytes are those that each subject has to move.
memory_share, product_share, launch_factor = 0.85, 0.95, 1.3
MiB = 1 << 20
moved = {"pointwise/add": 768 * MiB, "pointwise/gelu": 512 * MiB, "pointwise/add_row": 512 * MiB, "copy/clone": 512 * MiB,
         "copy/transposed": 512 * MiB, "reduce/sum": 256 * MiB, "reduce/sum_rows": 256 * MiB, "reduce/sum_columns": 256 * MiB,
         "softmax/rows_1024": 512 * MiB, "softmax/rows_32768": 512 * MiB, "norm/layer_norm": 512 * MiB, "random/dropout": 576 * MiB,
         "optimizer/sgd_momentum": 5 * 256 * MiB, "optimizer/adam": 7 * 256 * MiB}


def started(command, environment, seconds):
    """What a program printed, to its end or until its time was up; its complaints go to stderr."""
    name = next((Path(c).name for c in command if str(c).endswith(".py")), Path(command[0]).name)
    try:
        result = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, env=environment, timeout=max(seconds, 1))
    except subprocess.TimeoutExpired as e:
        print(f"compare_cuda: {name} was stopped after {seconds:.0f} s", file=sys.stderr)
        return e.stdout.decode() if isinstance(e.stdout, bytes) else e.stdout or ""
    except OSError as e:
        print(f"compare_cuda: {name} cannot be started: {e}", file=sys.stderr)
        return ""
    if result.returncode:
        print(f"compare_cuda: {name} ended with exit status {result.returncode}", file=sys.stderr)
    return result.stdout


def tenon(text):
    """Seconds by name from Google Benchmark's JSON, of which the end may be missing."""
    if "{" not in text:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        found = json.loads(text[:text.rfind("}") + 1] + "]}")
    times = {}
    for b in found.get("benchmarks", []):
        name = b["name"].removesuffix("/real_time").removesuffix("/manual_time")
        if b.get("error_occurred"):
            print(f"compare_cuda: {name}: {b.get('error_message')}", file=sys.stderr)
        else:
            times[name] = 1 / b["items_per_second"]
    return times


def lines(text):
    """{name: seconds} from lines of one such pair each."""
    times = {}
    for line in text.splitlines():
        if line.startswith("{") and line.endswith("}"):
            times.update(json.loads(line))
    return times


def rows(ours, torch_, ceilings):
    """(subject, figure, value, target, kept) of every figure; value is None where the other side, or ours, is missing."""
    def ratio(a, b):
        return a / b if a and b else None

    expected = {"dispatch/queued_add"}
    for name in sorted(expected | set(ours) | set(torch_) | set(targets) | set(moved)):
        seconds, target = ours.get(name), targets.get(name)
        if name in torch_ or target:
            value = ratio(seconds, torch_.get(name.replace("_captured", "")))
            yield name, "of PyTorch eager", value, f"<= {target}" if target else "", target is None or (value is not None and value <= target)
        if "_captured_" in name:
            yield name, "of PyTorch's CUDA graph", ratio(seconds, torch_.get(name)), "", True
        if name in moved:
            moving = ratio(moved[name], ceilings.get("bytes_per_second"))
            share = ratio(moving, seconds)
            wanted = name.split("/")[0] in ("pointwise", "softmax", "optimizer")
            kept = not wanted or (share is not None and share >= memory_share)
            yield name, "of copy bandwidth", share, f">= {memory_share}" if wanted else "", kept
        if name.startswith("matmul/"):
            share = ratio(ceilings.get(name), seconds)
            yield name, "of cuBLASLt's best", share, f">= {product_share}", share is not None and share >= product_share
        if name == "dispatch/queued_add":
            factor = ratio(seconds, ceilings.get("launch"))
            yield name, "of a bare launch", factor, f"<= {launch_factor}", factor is not None and factor <= launch_factor


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="the folder of cuda_bench and ceilings")
    parser.add_argument("--json", type=Path, help="write all seconds there")
    parser.add_argument("--seconds", default="0.2", help="least time a subject is run for")
    parser.add_argument("--torch", default=sys.executable, help="a Python with PyTorch; empty for none")
    parser.add_argument("--library-path", help="LD_LIBRARY_PATH of Tenon's programs; PyTorch keeps the one that is set")
    parser.add_argument("--budget", type=float, default=540, help="seconds for all of it")
    options = parser.parse_args()
    end = time.monotonic() + options.budget
    here = dict(os.environ)
    packed = here | ({"LD_LIBRARY_PATH": options.library_path} if options.library_path else {})

    def left(share):
        return (end - time.monotonic()) * share
    text = started([options.programs / "ceilings"], packed, left(0.25))
    ceilings = json.loads(text) if text.strip().endswith("}") else {}
    command = [options.programs / "cuda_bench", f"--benchmark_min_time={options.seconds}", "--benchmark_format=json"]
    ours = tenon(started(command, packed, left(0.55)))
    torch_ = lines(started([options.torch, Path(__file__).parent / "torch_cuda.py"], here, left(0.95))) if options.torch else {}
    if options.json:
        options.json.write_text(json.dumps({"tenon": ours, "torch": torch_, "ceilings": ceilings}, indent=1))
    missed = 0
    for name, figure, value, target, kept in rows(ours, torch_, ceilings):
        missed += not kept
        said = "NO FIGURE" if name not in ours else "NO YARDSTICK" if value is None else "" if not target else "pass" if kept else "MISS"
        missed += said.startswith("NO ") and kept
        print(f"{name:32} {'-' if value is None else f'{value:.3f}':>8} {figure:24} {target:8} {said}")
    return 4 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
