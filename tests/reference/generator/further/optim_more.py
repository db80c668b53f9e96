"""Optimisers: start value, a fixed list of gradients, the value after each step."""

import json
import zlib

import numpy as np
import torch

from .common import A, Family, V, f, rng


def write():
    fam = Family("optim_more")
    rng.seed(zlib.crc32(f"{A.seed} optim_more".encode()))
    for op, a in [
        ("SGD", {"lr": 0.1, "maximize": True}),
        ("SGD", {"lr": 0.1, "momentum": 0.8, "maximize": True, "weight_decay": 0.1}),
        ("Adam", {"lr": 0.02, "amsgrad": True, "maximize": True}),
        ("Adam", {"lr": 0.02, "betas": [0.5, 0.8], "amsgrad": True, "weight_decay": 0.05}),
        ("AdamW", {"lr": 0.02, "amsgrad": True, "maximize": True}),
        ("NAdam", {"lr": 0.02}),
        ("NAdam", {"lr": 0.02, "weight_decay": 0.1, "momentum_decay": 0.02}),
        ("NAdam", {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True}),
        ("RAdam", {"lr": 0.02}),
        ("RAdam", {"lr": 0.02, "betas": [0.8, 0.9], "weight_decay": 0.1}),
        ("RAdam", {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True}),
        ("RMSprop", {"lr": 0.02, "alpha": 0.8, "centered": True}),
        ("RMSprop", {"lr": 0.02, "momentum": 0.7, "weight_decay": 0.1}),
        ("RMSprop", {"lr": 0.02, "momentum": 0.7, "centered": True, "maximize": True}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2}),
        ("Adagrad", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
        ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-5}),
        ("Adadelta", {"lr": 0.5, "weight_decay": 0.1, "maximize": True}),
        ("Adamax", {"lr": 0.02}),
        ("Adamax", {"lr": 0.02, "betas": [0.7, 0.8], "weight_decay": 0.1}),
        ("ASGD", {"lr": 0.1}),
        ("ASGD", {"lr": 0.1, "lambd": 0.05, "alpha": 0.6, "t0": 3.0, "weight_decay": 0.1}),
        ("Rprop", {"lr": 0.02}),
        ("Rprop", {"lr": 0.02, "etas": [0.4, 1.3], "step_sizes": [0.001, 0.05]}),
    ]:
        for _ in V:
            x0, grads = f(4, 3), f(10, 4, 3)
            runs = {}
            for dtype in (torch.float64, torch.float32):
                p = torch.from_numpy(x0.copy()).to(dtype).requires_grad_()
                opt, runs[dtype] = getattr(torch.optim, op)([p], **a), []
                for g in grads:
                    p.grad = torch.from_numpy(g).to(dtype)
                    opt.step()
                    runs[dtype].append(p.detach().numpy().copy())
            steps, check = np.stack(runs[torch.float64]), np.stack(runs[torch.float32])
            assert (
                np.isfinite(steps).all()
                and (np.abs(check - steps) <= 0.5 * (1e-5 + 1e-4 * np.abs(steps))).all()
            ), (op, a)
            grp = fam.file.create_group(f"{fam.count:04d}_{op}")
            fam.count += 1
            grp.attrs["op"], grp.attrs["args"], grp.attrs["rtol"], grp.attrs["atol"] = (
                op,
                json.dumps(a, sort_keys=True),
                1e-4,
                1e-5,
            )
            grp["param"], grp["grads"], grp["steps"] = x0, grads, steps
    fam.close("optim_more")
