"""Further families of cases, a module each; their numbers are seeded by the family's name."""

import warnings

import torch

from . import common
from . import (
    attention,
    decomposition,
    half,
    image,
    index,
    loss_more,
    metrics,
    norm_more,
    optim_more,
    promotion,
    recurrent,
    scan,
    schedule,
    sort,
    tensor,
)

FAMILIES = (
    scan,
    sort,
    index,
    tensor,
    decomposition,
    image,
    attention,
    recurrent,
    loss_more,
    norm_more,
    metrics,
    half,
    optim_more,
    schedule,
    promotion,
)


def write(directory):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    directory.mkdir(parents=True, exist_ok=True)
    common.A.out = directory
    for family in FAMILIES:
        torch.manual_seed(common.A.seed)
        family.write()
