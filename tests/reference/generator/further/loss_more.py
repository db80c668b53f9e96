"""More losses."""

import numpy as np
import torch
import torch.nn.functional as F

from .common import A, Cases, LOOSE, V, coin, f, ints, number, off, rng, some


def write():
    fam = Cases("loss_more", places=(F,))
    for v in V:
        n, c = number(1 if A.hard else 2, 7), number(2, 7)
        sign = lambda *s: rng.choice([-1, 1], s).astype(np.float32)
        unit = lambda *s: f(*s, lo=0.02, hi=0.98)
        pair = "input target"
        r = {"reduction": ("mean", "sum", "none")[v % 3]}
        fam.add("binary_cross_entropy", [unit(n, c), unit(n, c)], r, pair, constant=(1,))
        fam.add(
            "binary_cross_entropy_with_logits",
            [f(n, c) * 3, unit(n, c), f(c, lo=0.3, hi=3)],
            r,
            pair + " pos_weight",
            lambda x, y, p: F.binary_cross_entropy_with_logits(x, y, pos_weight=p, **r),
            constant=(1, 2),
        )
        fam.add("kl_div", [f(n, c), f(n, c)], dict(r, log_target=True), pair)
        fam.add("huber_loss", [f(n, c) * 2, f(n, c)], dict(r, delta=some(0.5, 1.0, 2.0)), pair)
        fam.add("smooth_l1_loss", [f(n, c) * 2, f(n, c)], dict(r, beta=some(0.0, 0.5, 1.0)), pair)
        fam.add(
            "poisson_nll_loss",
            [f(n, c), rng.randint(0, 5, (n, c)).astype(np.float32)],
            dict(r, log_input=True, full=coin(), eps=1e-8),
            pair,
            constant=(1,),
        )
        fam.add(
            "poisson_nll_loss",
            [f(n, c, lo=0.2, hi=3), rng.randint(0, 5, (n, c)).astype(np.float32)],
            dict(r, log_input=False, full=coin(), eps=1e-8),
            pair,
            constant=(1,),
        )
        fam.add(
            "gaussian_nll_loss",
            [f(n, c), f(n, c), f(*some([n, c], [n, 1]), lo=0.3, hi=2)],
            dict(r, full=coin(), eps=1e-6),
            pair + " var",
        )
        fam.add(
            "hinge_embedding_loss",
            [off(n, c), sign(n, c)],
            dict(r, margin=some(1.0, 0.5)),
            pair,
            constant=(1,),
        )
        fam.add(
            "margin_ranking_loss",
            [f(n), f(n), sign(n)],
            dict(r, margin=some(0.0, 0.4)),
            "input1 input2 target",
            constant=(2,),
        )
        fam.add(
            "triplet_margin_loss",
            [f(n, c), f(n, c), f(n, c)],
            dict(r, margin=1.0, p=some(1.0, 2.0), eps=1e-6, swap=coin()),
            "anchor positive negative",
        )
        fam.add(
            "cosine_embedding_loss",
            [f(n, c), f(n, c), sign(n)],
            dict(r, margin=some(0.0, -0.4)),
            "input1 input2 target",
            constant=(2,),
        )
        fam.add(
            "multi_margin_loss",
            [f(n, c), ints(c, n)],
            dict(r, p=some(1, 2), margin=some(1.0, 0.5)),
            pair,
        )
        fam.add("soft_margin_loss", [f(n, c) * 2, sign(n, c)], r, pair, constant=(1,))
        t = ints(c, n + 1)
        t[0] = 1
        ignoring = dict(r, ignore_index=0)
        fam.add(
            "nll_loss",
            [f(n + 1, c), t, f(c, lo=0.2, hi=2)],
            ignoring,
            pair + " weight",
            lambda x, y, w: F.nll_loss(x, y, weight=w, **ignoring),
            constant=(2,),
        )
        p = rng.dirichlet(np.ones(c), n).astype(np.float32)
        smooth = dict(r, label_smoothing=some(0.0, 0.1))
        fam.add("cross_entropy", [f(n, c) * 2, p], smooth, pair, constant=(1,))
        fam.add(
            "cross_entropy",
            [f(n, c) * 2, p, f(c, lo=0.2, hi=2)],
            smooth,
            pair + " weight",
            lambda x, y, w: F.cross_entropy(x, y, weight=w, **smooth),
            constant=(1, 2),
        )
        frames, classes, most = number(6, 10), number(3, 6), number(1, 4)
        lengths = rng.randint(min(1, most), most + 1, 2).astype(np.int64)
        blank = number(0, classes)
        targets = rng.choice([q for q in range(classes) if q != blank], (2, most)).astype(np.int64)
        a = dict(r, blank=blank, zero_infinity=False)
        fam.add(
            "ctc_loss",
            [
                f(frames, 2, classes),
                targets,
                np.array([frames, number(2 * most, frames + 1)], np.int64),
                lengths,
            ],
            a,
            "logits targets input_lengths target_lengths",
            lambda x, *t: F.ctc_loss(torch.log_softmax(x, -1), *t, **a),
            tol=LOOSE,
        )
        fam.add(
            "kl_div",
            [f(n, c), unit(n, c)],
            {"reduction": "batchmean", "log_target": False},
            pair,
            constant=(1,),
        )
        fam.add(
            "binary_cross_entropy",
            [unit(n, c), unit(n, c), f(n, c, lo=0.3, hi=2)],
            {"reduction": "mean"},
            pair + " weight",
            lambda x, y, w: F.binary_cross_entropy(x, y, weight=w),
            constant=(1, 2),
        )
        fam.add(
            "multi_margin_loss",
            [f(n, c), ints(c, n), f(c, lo=0.3, hi=2)],
            {"reduction": "mean", "p": 1, "margin": 1.0},
            pair + " weight",
            lambda x, y, w: F.multi_margin_loss(x, y, weight=w),
            constant=(2,),
        )
    fam.close(fam.name)
