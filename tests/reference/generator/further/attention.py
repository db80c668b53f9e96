"""Attention."""

import numpy as np
import torch
import torch.nn.functional as F

from .common import Cases, LOOSE, V, coin, f, number, rng, some


def write():
    fam = Cases("attention")

    def mask_of(*s):
        m = rng.rand(*s) < 0.6
        m[..., 0] = True  # every query sees something
        return m

    def rotary(x, base, offset, interleaved):
        n, d = x.shape[-2], x.shape[-1]
        angle = (torch.arange(n, dtype=x.dtype)[:, None] + offset) * base ** (
            -torch.arange(0, d, 2, dtype=x.dtype) / d
        )
        c, s = angle.cos(), angle.sin()
        if interleaved:
            a, b = x[..., ::2], x[..., 1::2]
            return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
        a, b = x[..., : d // 2], x[..., d // 2 :]
        return torch.cat((a * c - b * s, a * s + b * c), -1)

    for _ in V:
        b, h, l, s, e, ev = (
            number(1, 3),
            number(1, 4),
            number(1, 6),
            number(2, 8),
            2 * number(1, 4),
            number(1, 6),
        )
        qkv = lambda l, s: [f(b, h, l, e), f(b, h, s, e), f(b, h, s, ev)]
        sdpa, names = "scaled_dot_product_attention", "query key value"
        fam.add(sdpa, qkv(l, s), {"is_causal": False}, names)
        fam.add(sdpa, qkv(s, s), {"is_causal": True}, names)
        fam.add(sdpa, qkv(l, s), {"is_causal": True}, names)
        fam.add(sdpa, qkv(l, s), {"is_causal": False, "scale": some(0.3, 1.0)}, names)
        fam.add(
            sdpa,
            qkv(l, s) + [mask_of(*some([l, s], [b, 1, l, s], [b, h, l, s]))],
            {"is_causal": False},
            names + " attn_mask",
        )
        fam.add(
            sdpa,
            qkv(l, s) + [f(*some([l, s], [b, h, l, s], [1, h, 1, s]))],
            {"is_causal": False, "scale": 0.5},
            names + " attn_mask",
            constant=(3,),
        )
        fam.add(sdpa, [f(l, e), f(s, e), f(s, ev)], {"is_causal": False}, names)
        e, h, n = 6, some(1, 2, 3), 2
        for masks in ("", " attn_mask", " key_padding_mask"):
            for own in (True, False):
                if own and masks == "":
                    continue
                average = coin()
                a = {"num_heads": h, "need_weights": True, "average_attn_weights": average}
                s = l if own else s
                q = f(l, n, e)
                kv = [q, q] if own else [f(s, n, e), f(s, n, e)]
                ins = ([q] if own else [q] + kv) + [
                    f(3 * e, e) * np.float32(0.5),
                    f(3 * e),
                    f(e, e),
                    f(e),
                ]
                if masks == " attn_mask":
                    ins.append(~mask_of(l, s))
                if masks == " key_padding_mask":
                    ins.append(~mask_of(n, s))

                def mha(q, *t):
                    k, v, *t = (q, q, *t) if own else t
                    w, bias, ow, ob, *m = t
                    return F.multi_head_attention_forward(
                        q,
                        k,
                        v,
                        e,
                        h,
                        w,
                        bias,
                        None,
                        None,
                        False,
                        0.0,
                        ow,
                        ob,
                        training=False,
                        average_attn_weights=average,
                        need_weights=True,
                        **({masks.strip(): m[0]} if m else {})
                    )

                fam.add(
                    "multi_head_attention_forward",
                    ins,
                    a,
                    ("query" if own else "query key value")
                    + " in_proj_weight in_proj_bias out_proj_weight out_proj_bias"
                    + masks,
                    mha,
                    tol=LOOSE,
                )
        for interleaved in (False, True):
            a = {"base": some(10000.0, 100.0), "offset": some(0, 3), "interleaved": interleaved}
            fam.add(
                "rotary_embedding",
                [f(2, 2, number(1, 7), 2 * number(1, 5))],
                a,
                fn=lambda x: rotary(x, **a),
            )
    fam.close(fam.name)
