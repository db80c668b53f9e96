"""Learning-rate schedules: the rate in force at each of 40 steps."""

import json
import zlib

import numpy as np
import torch

from .common import A, Family, V, f, number, rng, some


def write():
    STEPS, LR = 40, torch.optim.lr_scheduler
    fam = Family("schedule")
    rng.seed(zlib.crc32(f"{A.seed} schedule".encode()))

    def scheduler(op, opt, a):
        a = dict(a)
        if op == "SequentialLR":
            a["schedulers"] = [scheduler(q["op"], opt, q["args"]) for q in a["schedulers"]]
        return getattr(LR, op)(opt, **a)

    for _ in V:
        warm, cycle = number(3, 10), number(8, 20)
        u = lambda lo, hi: round(float(rng.uniform(lo, hi)), 3)
        for op, a in [
            ("StepLR", {"step_size": number(2, 12), "gamma": u(0.1, 0.9)}),
            (
                "MultiStepLR",
                {"milestones": sorted(number(1, 39) for _ in range(3)), "gamma": u(0.1, 0.9)},
            ),
            ("ExponentialLR", {"gamma": u(0.8, 0.99)}),
            ("CosineAnnealingLR", {"T_max": STEPS, "eta_min": 0.0}),
            ("CosineAnnealingLR", {"T_max": cycle, "eta_min": u(0, 0.02)}),
            ("CosineAnnealingWarmRestarts", {"T_0": cycle, "T_mult": 1, "eta_min": 0.0}),
            ("CosineAnnealingWarmRestarts", {"T_0": warm, "T_mult": 2, "eta_min": u(0, 0.02)}),
            (
                "OneCycleLR",
                {
                    "max_lr": u(0.2, 1),
                    "total_steps": STEPS,
                    "pct_start": u(0.2, 0.5),
                    "anneal_strategy": "cos",
                    "div_factor": 25.0,
                    "final_div_factor": 1e4,
                    "three_phase": False,
                    "cycle_momentum": False,
                },
            ),
            (
                "OneCycleLR",
                {
                    "max_lr": u(0.2, 1),
                    "total_steps": STEPS,
                    "pct_start": u(0.2, 0.4),
                    "anneal_strategy": "linear",
                    "div_factor": 10.0,
                    "final_div_factor": 100.0,
                    "three_phase": True,
                    "cycle_momentum": False,
                },
            ),
            ("PolynomialLR", {"total_iters": number(10, 40), "power": u(0.5, 3)}),
            (
                "LinearLR",
                {"start_factor": u(0.1, 0.5), "end_factor": u(0.6, 1), "total_iters": warm},
            ),
            ("ConstantLR", {"factor": u(0.1, 0.9), "total_iters": warm}),
            (
                "CyclicLR",
                {
                    "base_lr": 0.01,
                    "max_lr": u(0.05, 0.3),
                    "step_size_up": warm,
                    "mode": "triangular",
                    "cycle_momentum": False,
                },
            ),
            (
                "CyclicLR",
                {
                    "base_lr": 0.01,
                    "max_lr": u(0.05, 0.3),
                    "step_size_up": warm,
                    "step_size_down": cycle,
                    "mode": "triangular2",
                    "cycle_momentum": False,
                },
            ),
            (
                "CyclicLR",
                {
                    "base_lr": 0.01,
                    "max_lr": u(0.05, 0.3),
                    "step_size_up": warm,
                    "mode": "exp_range",
                    "gamma": 0.97,
                    "cycle_momentum": False,
                },
            ),
            (
                "ReduceLROnPlateau",
                {
                    "mode": "min",
                    "factor": u(0.1, 0.6),
                    "patience": number(0, 4),
                    "threshold": 1e-2,
                    "threshold_mode": "rel",
                    "cooldown": number(0, 3),
                    "min_lr": 1e-4,
                },
            ),
            (
                "ReduceLROnPlateau",
                {
                    "mode": "max",
                    "factor": u(0.1, 0.6),
                    "patience": number(0, 4),
                    "threshold": 1e-2,
                    "threshold_mode": "abs",
                    "cooldown": number(0, 3),
                    "min_lr": 1e-4,
                },
            ),
            (
                "SequentialLR",
                {
                    "milestones": [warm],
                    "schedulers": [
                        {
                            "op": "LinearLR",
                            "args": {"start_factor": 0.1, "end_factor": 1.0, "total_iters": warm},
                        },
                        {
                            "op": "CosineAnnealingLR",
                            "args": {"T_max": STEPS - warm, "eta_min": u(0, 0.01)},
                        },
                    ],
                },
            ),
        ]:
            base = some(0.1, 0.5, 1.0)
            opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=base)
            s, lr = scheduler(op, opt, a), []
            metric = np.round(np.exp(-np.arange(STEPS) / 8) + 0.15 * rng.rand(STEPS), 4) * (
                -1 if a.get("mode") == "max" else 1
            )
            for i in range(STEPS):
                lr.append(opt.param_groups[0]["lr"])
                opt.step()
                if i < STEPS - 1:
                    s.step(*([float(metric[i])] if op == "ReduceLROnPlateau" else []))
            grp = fam.file.create_group(f"{fam.count:04d}_{op}")
            fam.count += 1
            assert np.isfinite(lr).all()
            grp.attrs["op"], grp.attrs["args"], grp.attrs["rtol"], grp.attrs["atol"] = (
                op,
                json.dumps(dict(a, lr=base), sort_keys=True),
                1e-9,
                1e-12,
            )
            grp["lr"] = np.array(lr, np.float64)
            if op == "ReduceLROnPlateau":
                grp["metric"] = metric
    fam.close("schedule")
