"""Sets cuda_bench beside PyTorch and beside the device's own ceilings, and prints the ratios. Called by gpu-proof; needs nothing but
Python for the ceilings, PyTorch for the rest."""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

# The most that Tenon's time may be, with PyTorch's eager time as 1.
targets = {"training/lenet_256": 0.6, "training/lenet_256_captured": 0.35}
# The least share of the ceiling that must be reached; bytes are those that each subject has to move.
memory_share, product_share, launch_factor = 0.85, 0.95, 1.3
MiB = 1 << 20
moved = {"pointwise/add": 768 * MiB, "pointwise/gelu": 512 * MiB, "pointwise/add_row": 512 * MiB, "copy/clone": 512 * MiB,
         "copy/transposed": 512 * MiB, "reduce/sum": 256 * MiB, "reduce/sum_rows": 256 * MiB, "reduce/sum_columns": 256 * MiB,
         "softmax/rows_1024": 512 * MiB, "softmax/rows_32768": 512 * MiB, "norm/layer_norm": 512 * MiB, "random/dropout": 576 * MiB,
         "optimizer/sgd_momentum": 5 * 256 * MiB, "optimizer/adam": 7 * 256 * MiB}


def tenon(program, seconds):
    text = subprocess.run([program, f"--benchmark_min_time={seconds}", "--benchmark_format=json"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    if not text.strip().startswith("{"):
        return {}
    times = {}
    for b in json.loads(text)["benchmarks"]:
        name = b["name"].removesuffix("/real_time").removesuffix("/manual_time")
        if b.get("error_occurred"):
            print(f"{name}: {b.get('error_message')}", file=sys.stderr)
        else:
            times[name] = 1 / b["items_per_second"]
    return times


def output(command, environment):
    result = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, env=environment)
    if result.returncode or not result.stdout.strip():
        print(f"compare_cuda: {command[-1]} gave nothing (exit status {result.returncode})", file=sys.stderr)
        return {}
    return json.loads(result.stdout)


def rows(ours, torch_, ceilings):
    """(subject, figure, value, target, kept) for every figure that has both sides."""
    for name, seconds in ours.items():
        if name in torch_:
            value = seconds / (torch_["training/lenet_256"] if name.endswith("_captured") else torch_[name])
            target = targets.get(name)
            yield name, "of PyTorch eager", value, f"<= {target}" if target else "", target is None or value <= target
        if name == "training/lenet_256_captured" and name in torch_:
            yield name, "of PyTorch's CUDA graph", seconds / torch_[name], "", True
        if name in moved and "bytes_per_second" in ceilings:
            share = moved[name] / seconds / ceilings["bytes_per_second"]
            wanted = name.split("/")[0] in ("pointwise", "softmax", "optimizer")
            yield name, "of copy bandwidth", share, f">= {memory_share}" if wanted else "", not wanted or share >= memory_share
        if name.startswith("matmul/") and name in ceilings:
            share = ceilings[name] / seconds
            yield name, "of cuBLASLt's best", share, f">= {product_share}", share >= product_share
        if name == "dispatch/queued_add" and "launch" in ceilings:
            factor = seconds / ceilings["launch"]
            yield name, "of a bare launch", factor, f"<= {launch_factor}", factor <= launch_factor


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="the folder of cuda_bench and ceilings")
    parser.add_argument("--json", type=Path, help="write all seconds there")
    parser.add_argument("--seconds", default="0.2", help="least time a subject is run for")
    parser.add_argument("--torch", default=sys.executable, help="a Python with PyTorch; empty for none")
    options = parser.parse_args()
    # PyTorch brings libraries of its own.
    clean = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    ours = tenon(options.programs / "cuda_bench", options.seconds)
    if not ours:
        print("compare_cuda: no device, nothing to measure")
        return 0
    ceilings = output([options.programs / "ceilings"], dict(os.environ))
    torch_ = output([options.torch, Path(__file__).parent / "torch_cuda.py"], clean) if options.torch else {}
    if options.json:
        options.json.write_text(json.dumps({"tenon": ours, "torch": torch_, "ceilings": ceilings}, indent=1))
    missed = 0
    for name, figure, value, target, kept in rows(ours, torch_, ceilings):
        missed += not kept
        print(f"{name:30} {value:8.3f} {figure:24} {target:8} {'' if not target else 'pass' if kept else 'MISS'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
