"""Resampling, pooling, transposed convolution."""

import numpy as np
import torch.nn.functional as F

from .common import Cases, LOOSE, V, coin, distinct, f, number, some


def write():
    fam = Cases("image", LOOSE, places=(F,))

    def clear_of_rounding(n_in, n_out):
        """Whether nearest-neighbour positions come out the same in any arithmetic."""
        return all(
            int(np.floor(np.float32(i) * np.float32(n_in / n_out))) == i * n_in // n_out
            for i in range(n_out)
        )

    for _ in V:
        while True:
            h, w, *size = (number(2, 8) for _ in range(4))
            if clear_of_rounding(h, size[0]) and clear_of_rounding(w, size[1]):
                break
        x = f(*some([1, 2], [2, 1]), h, w)
        factor = lambda: some(2.0, 3.0, 1.7, [2.0, 2.3], [1.7, 0.7])
        fam.add("interpolate", [x], {"size": size, "mode": "nearest"})
        fam.add("interpolate", [x], {"scale_factor": factor(), "mode": "nearest"})
        for corners in (False, True):
            for mode in ("bilinear", "bicubic"):
                fam.add("interpolate", [x], {"size": size, "mode": mode, "align_corners": corners})
                fam.add(
                    "interpolate",
                    [x],
                    {"scale_factor": factor(), "mode": mode, "align_corners": corners},
                )
        fam.add("upsample", [x], {"scale_factor": some(2.0, 3.0), "mode": "nearest"})
        fam.add("upsample", [x], {"size": size, "mode": "bilinear", "align_corners": coin()})
        for mode in ("bilinear", "nearest"):
            for padding in ("zeros", "border"):
                a = {"mode": mode, "padding_mode": padding, "align_corners": coin()}
                fam.add(
                    "grid_sample",
                    [f(2, 2, 4, 5), f(2, 3, 4, 2, lo=-1.3, hi=1.3)],
                    a,
                    "input grid",
                    constant=(1,) if mode == "nearest" else (),
                )
        r = some(2, 3)
        fam.add("pixel_shuffle", [f(2, 2 * r * r, 2, 3)], {"upscale_factor": r})
        for nd in (1, 3):
            k, dilation = number(2, 4), number(1, 3)
            x = distinct([2, 2, 11] if nd == 1 else [1, 2, 6, 5, 6])
            a = {
                "kernel_size": [k] + [2] * (nd - 1),
                "stride": [number(1, 4) for _ in range(nd)],
                "padding": [number(0, 2) for _ in range(nd)],
                "ceil_mode": coin(),
            }
            fam.add(
                f"max_pool{nd}d",
                [x],
                dict(a, dilation=[dilation] + [1] * (nd - 1)),
                fn=lambda t: getattr(F, f"max_pool{nd}d")(
                    t, dilation=[dilation] + [1] * (nd - 1), **a
                ),
            )
            fam.add(f"avg_pool{nd}d", [x], dict(a, count_include_pad=coin()))
            g = number(1, 3)
            cin, cout = 2 * g, 2 * number(1, 3)
            stride = [number(1, 4) for _ in range(nd)]
            a = {
                "stride": stride,
                "padding": [number(0, 2) for _ in range(nd)],
                "output_padding": [number(0, q) for q in stride],
                "groups": g,
                "dilation": [number(1, 3) if nd == 1 else 1] * nd,
            }
            ins = [
                f(*([2, cin, 6] if nd == 1 else [1, cin, 3, 2, 3])),
                f(cin, cout, *([3] if nd == 1 else [2, 3, 2])),
                f(cout * g),
            ]
            if coin(0.3):
                ins = ins[:2]
            fam.add(
                f"conv_transpose{nd}d", ins, a, " ".join(["input", "weight", "bias"][: len(ins)])
            )
        x = distinct(2, 2, number(4, 9), number(4, 9))
        fam.add("adaptive_max_pool2d", [x], {"output_size": [number(1, 5), number(1, 5)]})
        fam.add("adaptive_avg_pool1d", [f(2, 3, number(4, 12))], {"output_size": number(1, 7)})
        fam.add(
            "lp_pool2d",
            [f(2, 2, 6, 7, lo=0.2, hi=2)],
            {
                "norm_type": some(1.0, 2.0, 3.0),
                "kernel_size": [2, 3],
                "stride": [number(1, 3), 2],
                "ceil_mode": coin(),
            },
        )
    fam.close(fam.name)
