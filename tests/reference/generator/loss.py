"""Losses that the shared cases lack (loss_extra.h5)."""
import numpy as np
import torch
import torch.nn.functional as F

from .operators import operator

REDUCTIONS = ("mean", "sum", "none")


@operator("loss_extra", "multilabel_margin_loss")
def multilabel_margin_loss(kit):
    target = np.array([[3, 0, -1, 1], [-1, 2, 0, 0], [0, 1, 2, 3]], np.int64)
    for reduction in REDUCTIONS:
        def loss(x, t):
            return F.multilabel_margin_loss(x, t, reduction=reduction)

        kit.case(loss, [kit.normal(3, 4), target], {"reduction": reduction},
                 names=["input", "target"])
        kit.case(loss, [kit.normal(4), target[0]], {"reduction": reduction},
                 names=["input", "target"])


@operator("loss_extra", "multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(kit):
    for reduction in REDUCTIONS:
        for weight in (None, kit.uniform(0.5, 2, 5)):
            kit.case(lambda x, t, w: F.multilabel_soft_margin_loss(x, t, w, reduction=reduction),
                     [kit.normal(3, 5) * 3, kit.uniform(0, 1, 3, 5), weight],
                     {"reduction": reduction}, names=["input", "target", "weight"],
                     constant=(1, 2))


@operator("loss_extra", "binary_cross_entropy")
def binary_cross_entropy(kit):
    # Where the logarithm is infinite, PyTorch has a bound, and so has the gradient.
    x = np.array([0, 1, 0, 1, 0.3], np.float32)
    t = np.array([0, 1, 1, 0, 0.7], np.float32)
    kit.case(lambda x, t: F.binary_cross_entropy(x, t, reduction="none"), [x, t],
             {"reduction": "none"}, names=["input", "target"], constant=(1,))


@operator("loss_extra", "ctc_loss")
def ctc_loss(kit):
    def case(logits, targets, input_lengths, target_lengths, **args):
        kit.case(lambda x, t, i, n: F.ctc_loss(F.log_softmax(x, -1), t, i, n, **args),
                 [logits, np.array(targets, np.int64), np.array(input_lengths, np.int64),
                  np.array(target_lengths, np.int64)], args,
                 names=["logits", "targets", "input_lengths", "target_lengths"])

    repeated = [[1, 1, 2], [2, 2, 2]]
    for reduction in REDUCTIONS:
        case(kit.normal(9, 2, 4), repeated, [9, 7], [3, 2], reduction=reduction)
        # Labels in one row, and a sequence without any.
        case(kit.normal(8, 3, 4), [1, 2, 3, 3, 1], [8, 8, 5], [2, 0, 3], reduction=reduction)
        # Too few steps for the labels.
        case(kit.normal(4, 2, 4), repeated, [4, 4], [2, 3], reduction=reduction,
             zero_infinity=True)
    case(kit.normal(7, 4), [1, 3, 3], [7], [3], reduction="sum", blank=2)
