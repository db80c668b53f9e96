"""Metrics, by their definitions."""

import numpy as np
import torch

from .common import Cases, V, distinct, f, ints, number, rng


def write():
    fam = Cases("metrics")

    def confusion(pred, target, n):
        return torch.bincount(target * n + pred, minlength=n * n).reshape(n, n)

    def f1_macro(pred, target, n):
        m = confusion(pred, target, n).double()
        hit, of_pred, of_target = m.diagonal(), m.sum(0), m.sum(1)
        seen = of_pred + of_target > 0
        return (2 * hit[seen] / (of_pred + of_target)[seen]).mean()

    def auroc(score, target):
        up, down = score[target == 1][:, None], score[target == 0][None]
        return ((up > down).double() + 0.5 * (up == down).double()).mean()

    def top_k(logits, target, k):
        return (logits.topk(k).indices == target[:, None]).any(1).double().mean()

    for _ in V:
        n, c = number(2, 16), number(3, 7)
        logits, pred, target, two = (
            distinct(n, c),
            ints(c, n),
            ints(c, n),
            rng.permutation(np.arange(n) % 2).astype(np.int64),
        )
        k = number(2, c)
        fam.add(
            "accuracy",
            [logits, target],
            {},
            "input target",
            lambda x, y: top_k(x, y, 1),
            diff=False,
        )
        fam.add(
            "top_k_accuracy",
            [logits, target],
            {"k": k},
            "input target",
            lambda x, y: top_k(x, y, k),
            diff=False,
        )
        fam.add(
            "confusion_matrix",
            [pred, target],
            {"num_classes": c},
            "input target",
            lambda x, y: confusion(x, y, c),
        )
        fam.add(
            "f1_score",
            [pred, target],
            {"num_classes": c, "average": "macro"},
            "input target",
            lambda x, y: f1_macro(x, y, c),
        )
        fam.add(
            "f1_score",
            [pred // 2, target // 2],
            {"num_classes": c, "average": "macro"},
            "input target",
            lambda x, y: f1_macro(x, y, c),
        )  # with classes that never occur
        fam.add("auroc", [f(n, lo=0, hi=1), two], {}, "input target", auroc, diff=False)
        fam.add(
            "auroc",
            [rng.randint(0, 4, n).astype(np.float32) / 4, two],
            {},
            "input target",
            auroc,
            diff=False,
        )  # with equal scores
    fam.close(fam.name)
