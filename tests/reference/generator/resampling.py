"""Reference cases of resampling: odd sizes, and factors that are no fractions of them."""
import torch.nn.functional as F

from .operators import operator

MODES = {1: "linear", 2: "bilinear", 3: "trilinear"}
IMAGES = {1: (2, 2, 7), 2: (1, 2, 5, 8), 3: (1, 1, 3, 4, 5)}


@operator("resampling", "interpolate")
def interpolate(kit):
    def case(dims, **args):
        kit.case(lambda t: F.interpolate(t, **args), [kit.normal(*IMAGES[dims])], args)

    for dims in (1, 2, 3):
        sizes = [[5], [9], [1]] if dims == 1 else [[7, 3], [5, 16], [1, 9]] if dims == 2 else [
            [5, 3, 7], [3, 8, 1]]
        factors = [1.7, 0.3, 2.0] if dims == 1 else [[1.7, 0.3], 1.3, [0.6, 3.0], [2.0, 1.05]] \
            if dims == 2 else [[1.7, 0.6, 2.0], 1.5]
        # A factor that does not change a size is left out where PyTorch's gradient is not that of its
        # result: with antialias, and of the nearest element of lines and volumes.
        scales = [{"size": s} for s in sizes] + [{"scale_factor": f} for f in factors] + [
            {"scale_factor": factors[0], "recompute_scale_factor": True}]
        for scale in scales:
            for mode in ("nearest", "nearest-exact", "area"):
                case(dims, mode=mode, **scale)
            for mode in [MODES[dims]] + (["bicubic"] if dims == 2 else []):
                for align in (False, True):
                    case(dims, mode=mode, align_corners=align, **scale)
                    if dims == 2 and scale != {"scale_factor": [2.0, 1.05]}:
                        case(dims, mode=mode, align_corners=align, antialias=True, **scale)
            if dims == 2 and scale != {"scale_factor": [2.0, 1.05]}:
                case(dims, mode="lanczos", antialias=True, **scale)
    # Three elements and more below one of the result.
    for mode in ("bilinear", "bicubic", "lanczos"):
        args = {"size": [3, 20], "mode": mode, "antialias": True}
        kit.case(lambda t: F.interpolate(t, **args), [kit.normal(1, 1, 23, 6)], args)


@operator("resampling", "grid_sample")
def grid_sample(kit):
    def case(x, grid, **args):
        kit.case(lambda t, g: F.grid_sample(t, g, **args), [x, grid], args, names=["input", "grid"])

    for padding in ("zeros", "border", "reflection"):
        for align in (False, True):
            for mode in ("bilinear", "nearest", "bicubic"):
                # Some of these places lie far outside.
                args = {"mode": mode, "padding_mode": padding, "align_corners": align}
                case(kit.normal(2, 3, 5, 4), kit.uniform(-3.5, 3.5, 2, 4, 3, 2), **args)
                case(kit.normal(1, 2, 1, 6), kit.uniform(-1.2, 1.2, 1, 3, 3, 2), **args)
                if mode != "bicubic":
                    case(kit.normal(2, 2, 3, 4, 5), kit.uniform(-1.7, 1.7, 2, 2, 3, 2, 3), **args)
    far = kit.uniform(-1, 1, 1, 2, 3, 2)
    far[0, 0, 0] = 1e9
    far[0, 1, 2] = -3e30
    for padding in ("zeros", "border"):
        case(kit.normal(1, 2, 4, 5), far, padding_mode=padding, align_corners=False)


@operator("resampling", "affine_grid")
def affine_grid(kit):
    for align in (False, True):
        for size in ([2, 1, 3, 4], [2, 3, 1, 5], [2, 1, 2, 3, 4]):
            dims = len(size) - 2
            args = {"size": size, "align_corners": align}
            kit.case(lambda t: F.affine_grid(t, **args), [kit.normal(2, dims, dims + 1)], args)


@operator("resampling", "pixel_unshuffle")
def pixel_unshuffle(kit):
    for shape, factor in (((2, 2, 4, 6), 2), ((1, 3, 6), 3), ((2, 1, 1, 4, 4), 4)):
        kit.case(lambda t: F.pixel_unshuffle(t, factor), [kit.normal(*shape)],
                 {"downscale_factor": factor})


@operator("resampling", "pixel_shuffle")
def pixel_shuffle(kit):
    for shape, factor in (((9, 1, 2), 3), ((2, 1, 8, 2, 1), 2)):
        kit.case(lambda t: F.pixel_shuffle(t, factor), [kit.normal(*shape)],
                 {"upscale_factor": factor})


@operator("resampling", "channel_shuffle")
def channel_shuffle(kit):
    for shape, groups in (((2, 6, 2, 3), 3), ((1, 8, 5), 2)):
        kit.case(lambda t: F.channel_shuffle(t, groups), [kit.normal(*shape)], {"groups": groups})
