"""The nine families that came first. All draw from one generator, in the order of this file: a case
inserted anywhere would change every later one. New operators go into operators.py."""
import numpy as np
import torch
import torch.nn.functional as F

from .draws import (LOOSE, MORE, SEED, VARIANTS, Family, broadcast_pair, chance, distinct, integers,
                    normal, number, rng, shape, uniform)
from .kit import File


def unary(case):
    domain = {"log": (0.1, 4), "sqrt": (0.1, 4), "rsqrt": (0.2, 4), "log1p": (-0.8, 4),
              "reciprocal": (0.3, 3)}
    for op in ("abs neg exp log log1p expm1 sqrt rsqrt sin cos tanh sigmoid erf reciprocal square "
               "sign floor ceil round relu").split():
        for _ in VARIANTS:
            s = shape(1, 4)
            x = uniform(*domain[op], s) if op in domain else distinct(s) + np.float32(0.013)
            case(op, getattr(torch, op), [x])
    activations = {
        "gelu": [{"approximate": "none"}, {"approximate": "tanh"}],
        "silu": [{}],
        "softplus": [{"beta": 1.0, "threshold": 20.0}, {"beta": 2.0, "threshold": 1.5}],
        "elu": [{"alpha": 1.0}, {"alpha": 0.5}],
        "leaky_relu": [{"negative_slope": 0.01}, {"negative_slope": 0.2}],
        "hardtanh": [{"min_val": -1.0, "max_val": 1.0}],
        "relu6": [{}], "hardswish": [{}], "hardsigmoid": [{}], "mish": [{}], "selu": [{}],
    }
    for op, choices in activations.items():
        for args in choices:
            for _ in VARIANTS:
                case(op, lambda x: getattr(F, op)(x, **args),
                     [distinct(shape(1, 4)) + np.float32(0.017)], args)
    for _ in VARIANTS:
        args = {"min": -0.5, "max": 0.7}
        case("clamp", lambda x: torch.clamp(x, **args), [distinct(shape()) + np.float32(0.011)],
             args)
        e = float(rng.choice([2.0, 3.0, 0.5, -1.0]))
        case("pow_scalar", lambda x: torch.pow(x, e), [uniform(0.3, 2, shape())], {"exponent": e})


def binary(case):
    both = ["input", "other"]
    for op in "add sub mul div maximum minimum".split():
        for _ in MORE:
            a, b = broadcast_pair()
            x, y = distinct(a), distinct(b) + np.float32(0.0173)
            if op == "div":
                y = uniform(0.4, 2, b)
            case(op, getattr(torch, op), [x, y], names=both)
    for _ in VARIANTS:
        a, b = broadcast_pair()
        case("pow", torch.pow, [uniform(0.3, 2, a), uniform(-2, 2, b)], names=["input", "exponent"])
        a, b = broadcast_pair()
        case("atan2", torch.atan2, [normal(a) + np.float32(2.5), normal(b) + np.float32(2.5)],
             names=both)
    for op in "eq ne lt le gt ge".split():
        for _ in VARIANTS:
            a, b = broadcast_pair()
            case(op, getattr(torch, op),
                 [rng.randint(-2, 3, a).astype(np.float32), rng.randint(-2, 3, b).astype(np.float32)],
                 names=both, diff=False)
    for op in "logical_and logical_or logical_xor".split():
        for _ in VARIANTS:
            a, b = broadcast_pair()
            case(op, getattr(torch, op), [rng.rand(*a) < 0.5, rng.rand(*b) < 0.5], names=both,
                 diff=False)
    for _ in VARIANTS:
        a, b = broadcast_pair()
        c = np.broadcast_shapes(tuple(a), tuple(b))
        case("where", torch.where, [rng.rand(*c) < 0.5, normal(a), normal(b)],
             names=["condition", "input", "other"])
        a, b = broadcast_pair()
        case("lerp", lambda x, y: x + 0.3 * (y - x), [normal(a), normal(b)], {"weight": 0.3},
             names=["input", "end"])


def reduce(case):
    for op in "sum mean amax amin prod logsumexp var std".split():
        for _ in MORE:
            s = shape(1, 4)
            dims = sorted(int(d) for d in rng.permutation(len(s))[:rng.randint(1, len(s) + 1)])
            keep = chance()
            x = distinct(s) if op != "prod" else uniform(0.5, 1.5, s)
            if op == "prod":
                d = dims[0]
                case(op, lambda t: torch.prod(t, d, keepdim=keep), [x], {"dim": d, "keepdim": keep})
                continue
            args = {"dim": dims, "keepdim": keep}
            if op in ("var", "std"):
                x = distinct([max(2, k) for k in s])
                args["unbiased"] = chance()
                case(op, lambda t: getattr(torch, op)(t, dims, unbiased=args["unbiased"],
                                                      keepdim=keep), [x], args)
            else:
                case(op, lambda t: getattr(torch, op)(t, dims, keepdim=keep), [x], args)
    for _ in VARIANTS:
        s = shape(1, 4)
        case("sum", torch.sum, [normal(s)], {})
        case("mean", torch.mean, [normal(s)], {})
        for op in ("argmax", "argmin"):
            d, keep = number(0, len(s)), chance()
            case(op, lambda t: getattr(torch, op)(t, d, keepdim=keep), [distinct(s)],
                 {"dim": d, "keepdim": keep}, diff=False)
        d = number(0, len(s))
        case("cumsum", lambda t: torch.cumsum(t, d), [normal(s)], {"dim": d})
        case("norm", lambda t: torch.linalg.vector_norm(t, 2, d), [normal(s) + np.float32(3)],
             {"p": 2.0, "dim": [d], "keepdim": False})
        k = number(1, s[d] + 1)
        case("topk", lambda t: torch.topk(t, k, d), [distinct(s)],
             {"k": k, "dim": d, "largest": True, "sorted": True})
        case("sort", lambda t: torch.sort(t, d), [distinct(s)], {"dim": d, "descending": False})
        flags = rng.rand(*s) < 0.7
        for op in ("all", "any"):
            case(op, lambda t: getattr(torch, op)(t, d), [flags], {"dim": d, "keepdim": False},
                 diff=False)


def shapes(case):
    for _ in VARIANTS:
        s = shape(2, 4)
        n = int(np.prod(s))
        order = [int(i) for i in rng.permutation(len(s))]
        case("reshape", lambda t: t.reshape(n // s[-1], s[-1]), [normal(s)],
             {"shape": [n // s[-1], s[-1]]})
        case("reshape", lambda t: t.reshape(-1), [normal(s)], {"shape": [-1]})
        case("permute", lambda t: t.permute(order), [normal(s)], {"dims": order})
        d0, d1 = (int(i) for i in rng.permutation(len(s))[:2])
        case("transpose", lambda t: t.transpose(d0, d1), [normal(s)], {"dim0": d0, "dim1": d1})
        case("flatten", lambda t: t.flatten(1), [normal(s)], {"start_dim": 1, "end_dim": -1})
        case("expand", lambda t: t.expand(s), [normal([1] + s[1:])], {"shape": s})
        case("unsqueeze", lambda t: t.unsqueeze(d0), [normal(s)], {"dim": d0})
        flat = list(s)
        flat[d0] = 1
        case("squeeze", lambda t: t.squeeze(d0), [normal(flat)], {"dim": d0})
        d = number(0, len(s))
        parts = [list(s) for _ in range(3)]
        for part in parts:
            part[d] = number(1, 5)
        case("cat", lambda *t: torch.cat(t, d), [normal(part) for part in parts], {"dim": d})
        case("stack", lambda *t: torch.stack(t, d), [normal(s), normal(s)], {"dim": d})
        long = list(s)
        long[d] = number(4, 9)
        k = number(1, 4)
        case("split", lambda t: torch.split(t, k, d), [normal(long)], {"split_size": k, "dim": d})
        case("chunk", lambda t: torch.chunk(t, 3, d), [normal(long)], {"chunks": 3, "dim": d})
        case("narrow", lambda t: t.narrow(d, 1, long[d] - 2), [normal(long)],
             {"dim": d, "start": 1, "length": long[d] - 2})
        every_second = [slice(None)] * len(long)
        every_second[d] = slice(1, long[d], 2)
        case("slice", lambda t: t[tuple(every_second)], [normal(long)],
             {"dim": d, "start": 1, "end": long[d], "step": 2})
        case("index_select", lambda t, i: torch.index_select(t, d, i),
             [normal(long), integers(long[d], 5)], {"dim": d}, names=["input", "index"])
        places = list(long)
        places[d] = 3
        case("gather", lambda t, i: torch.gather(t, d, i),
             [normal(long), integers(long[d], *places)], {"dim": d}, names=["input", "index"])
        case("scatter_add", lambda t, i, v: torch.scatter_add(t, d, i, v),
             [normal(long), integers(long[d], *places), normal(places)], {"dim": d},
             names=["input", "index", "src"])
        case("flip", lambda t: torch.flip(t, [d]), [normal(s)], {"dims": [d]})
        case("roll", lambda t: torch.roll(t, 2, d), [normal(s)], {"shifts": 2, "dim": d})
        repeats = [2] + [1] * (len(s) - 1)
        case("repeat", lambda t: t.repeat(*repeats), [normal(s)], {"repeats": repeats})
        case("tril", lambda t: torch.tril(t, 0), [normal(s)], {"diagonal": 0})
        case("triu", lambda t: torch.triu(t, 1), [normal(s)], {"diagonal": 1})
        image = normal(2, 3, 6, 5)
        for mode in ("constant", "reflect", "replicate"):
            pad = [int(v) for v in rng.randint(0, 3, 4)]
            value = 0.5 if mode == "constant" else 0.0
            case("pad", lambda t: F.pad(t, pad, mode, *([value] if value else [])), [image],
                 {"pad": pad, "mode": mode, "value": value})
        mask = rng.rand(*s) < 0.4
        case("masked_fill", lambda t, m: t.masked_fill(m, -2.5), [normal(s), mask],
             {"value": -2.5}, names=["input", "mask"])
        case("one_hot", lambda t: F.one_hot(t, 7), [integers(7, 4, 3)], {"num_classes": 7},
             diff=False)
        case("embedding", F.embedding, [integers(9, 4, 3), normal(9, 5)], {},
             names=["input", "weight"])


def linalg(case):
    both = ["input", "other"]
    for _ in MORE:
        m, k, n, b = (int(v) for v in rng.randint(1, 20, 4))
        b = 1 + b % 5
        for x, y in [((m, k), (k, n)), ((b, m, k), (b, k, n)), ((b, m, k), (k, n)),
                     ((2, 1, m, k), (b, k, n)), ((k,), (k, n)), ((m, k), (k,)), ((k,), (k,))]:
            case("matmul", torch.matmul, [normal(x), normal(y)], names=both)
        case("linear", F.linear, [normal(b, m, k), normal(n, k), normal(n)],
             names=["input", "weight", "bias"])
        case("linear", F.linear, [normal(m, k), normal(n, k)], names=["input", "weight"])
        case("bmm", torch.bmm, [normal(b, m, k), normal(b, k, n)], names=["input", "mat2"])
    for _ in VARIANTS:
        m, k, n = (int(v) for v in rng.randint(33, 150, 3))
        case("matmul", torch.matmul, [normal(m, k), normal(k, n)], names=both, tol=(1e-3, 1e-3))


def conv(case):
    weights = ["input", "weight", "bias"]
    for _ in range(6):
        groups = int(rng.choice([1, 1, 1, 2, 4]))
        c_in, c_out = 4 * number(1, 4), 4 * number(1, 4)
        if rng.rand() < 0.2:
            groups = c_out = c_in
        kh, kw = (int(v) for v in rng.randint(1, 6, 2))
        args = {"stride": [int(v) for v in rng.randint(1, 4, 2)],
                "padding": [int(v) for v in rng.randint(0, 3, 2)],
                "dilation": [int(v) for v in rng.randint(1, 3, 2)], "groups": groups}
        h, w = (int(v) for v in rng.randint(11, 18, 2))
        b = number(1, 4)
        inputs = [normal(b, c_in, h, w), normal(c_out, c_in // groups, kh, kw), normal(c_out)]
        if rng.rand() < 0.3:
            inputs = inputs[:2]
        case("conv2d", lambda *t: F.conv2d(*t, **args), inputs, args, names=weights[:len(inputs)],
             tol=LOOSE)
    for _ in MORE:
        groups = int(rng.choice([1, 2]))
        c_in, c_out, k = 4, 6, number(1, 5)
        args = {"stride": [number(1, 3)], "padding": [number(0, 3)], "dilation": [number(1, 3)],
                "groups": groups}
        case("conv1d", lambda *t: F.conv1d(*t, **args),
             [normal(2, c_in, 15), normal(c_out, c_in // groups, k), normal(c_out)], args,
             names=weights, tol=LOOSE)
        args = {"stride": [number(1, 3)] * 2, "padding": [number(0, 2)] * 2,
                "output_padding": [0, 0], "dilation": [1, 1], "groups": groups}
        case("conv_transpose2d", lambda *t: F.conv_transpose2d(*t, **args),
             [normal(2, c_in, 6, 7), normal(c_in, c_out // groups, 3, 3), normal(c_out)], args,
             names=weights, tol=LOOSE)
        args = {"stride": [1, number(1, 3), 1], "padding": [1, 0, 1], "dilation": [1, 1, 1],
                "groups": groups}
        case("conv3d", lambda *t: F.conv3d(*t, **args),
             [normal(2, c_in, 5, 6, 7), normal(c_out, c_in // groups, 2, 3, 3), normal(c_out)],
             args, names=weights, tol=LOOSE)
        pooling(case)


def pooling(case):
    k, stride = number(2, 4), number(1, 4)
    padding = number(0, k // 2 + 1)
    h, w = (int(v) for v in rng.randint(7, 14, 2))
    x = distinct(2, 3, h, w)
    window = {"kernel_size": [k, k], "stride": [stride, stride], "padding": [padding, padding]}
    args = dict(window, dilation=[1, 1], ceil_mode=chance(0.3))
    case("max_pool2d", lambda t: F.max_pool2d(t, **args), [x], args)
    args = dict(window, ceil_mode=False, count_include_pad=chance())
    case("avg_pool2d", lambda t: F.avg_pool2d(t, **args), [x], args)
    size = [int(v) for v in rng.randint(1, 6, 2)]
    case("adaptive_avg_pool2d", lambda t: F.adaptive_avg_pool2d(t, size), [x],
         {"output_size": size})
    args = {"size": [9, 8], "mode": "nearest"}
    case("interpolate", lambda t: F.interpolate(t, **args), [x], args)
    args = {"size": [9, 8], "mode": "bilinear", "align_corners": chance()}
    case("interpolate", lambda t: F.interpolate(t, **args), [x], args)


def norm(case):
    weights = ["input", "weight", "bias"]
    for _ in MORE:
        c = int(rng.choice([4, 6, 8]))
        x = normal(3, c, 5, 4) * 2 + np.float32(0.5)
        for training in (True, False):
            mean, var = normal(c), uniform(0.5, 2, c)

            def batch_norm(t, w, b):
                m, v = torch.from_numpy(mean).double(), torch.from_numpy(var).double()
                return F.batch_norm(t, m, v, w, b, training, 0.1, 1e-5)

            args = {"training": training, "momentum": 0.1, "eps": 1e-5,
                    "running_mean": [float(v) for v in mean], "running_var": [float(v) for v in var]}
            case("batch_norm", batch_norm, [x, normal(c), normal(c)], args, names=weights, tol=LOOSE)
        case("layer_norm", lambda t, w, b: F.layer_norm(t, [5, 4], w, b, 1e-5),
             [x, normal(5, 4), normal(5, 4)], {"normalized_shape": [5, 4], "eps": 1e-5},
             names=weights, tol=LOOSE)
        case("layer_norm", lambda t: F.layer_norm(t, [4], None, None, 1e-5), [x],
             {"normalized_shape": [4], "eps": 1e-5}, tol=LOOSE)
        case("rms_norm",
             lambda t, w: t * torch.rsqrt((t * t).mean(-1, keepdim=True) + 1e-6) * w,
             [x, normal(4)], {"normalized_shape": [4], "eps": 1e-6}, names=weights[:2], tol=LOOSE)
        case("group_norm", lambda t, w, b: F.group_norm(t, 2, w, b, 1e-5),
             [x, normal(c), normal(c)], {"num_groups": 2, "eps": 1e-5}, names=weights, tol=LOOSE)
        case("instance_norm", lambda t: F.instance_norm(t, eps=1e-5), [x], {"eps": 1e-5}, tol=LOOSE)
        s = shape(1, 4)
        d = number(0, len(s))
        for op in ("softmax", "log_softmax"):
            case(op, lambda t: getattr(F, op)(t, d), [normal(s) * 3], {"dim": d})
        case("softmax", lambda t: F.softmax(t, -1), [normal(2, 5) * 60 + np.float32(500)],
             {"dim": -1})
        case("normalize", lambda t: F.normalize(t, 2.0, 1, 1e-12), [normal(3, 6)],
             {"p": 2.0, "dim": 1, "eps": 1e-12})
        length = number(2, 9)
        for causal in (False, True):

            def attention(q, k, v):
                scores = q @ k.transpose(-1, -2) / 8**0.5
                if causal:
                    later = torch.ones(length, length).triu(1).bool()
                    scores = scores.masked_fill(later, float("-inf"))
                return torch.softmax(scores, -1) @ v

            case("scaled_dot_product_attention", attention,
                 [normal(2, 2, length, 8) for _ in range(3)], {"is_causal": causal},
                 names=["query", "key", "value"])


def loss(case):
    both = ["input", "target"]
    entropy = {"reduction": "mean", "label_smoothing": 0.0, "ignore_index": -100}
    for _ in MORE:
        n, c = number(1, 9), number(2, 11)
        labels = integers(c, n)
        for red in ("mean", "sum", "none"):
            case("cross_entropy", lambda x, y: F.cross_entropy(x, y, reduction=red),
                 [normal(n, c) * 2, labels], dict(entropy, reduction=red), names=both)
            for op, args in [("mse_loss", {}), ("l1_loss", {}), ("smooth_l1_loss", {"beta": 0.7}),
                             ("huber_loss", {"delta": 0.7})]:
                case(op, lambda x, y: getattr(F, op)(x, y, reduction=red, **args),
                     [normal(n, c), normal(n, c)], dict(args, reduction=red), names=both)
            case("binary_cross_entropy_with_logits",
                 lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction=red),
                 [normal(n, c) * 4, uniform(0, 1, n, c)], {"reduction": red}, names=both,
                 constant=(1,))
            case("nll_loss", lambda x, y: F.nll_loss(x, y, reduction=red), [normal(n, c), labels],
                 {"reduction": red}, names=both)
            case("kl_div", lambda x, y: F.kl_div(x, y, reduction=red),
                 [normal(n, c), uniform(0.1, 1, n, c)], {"reduction": red, "log_target": False},
                 names=both, constant=(1,))
        ignored = labels.copy()
        if n > 1:
            ignored[0] = -100
        case("cross_entropy", lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
             [normal(n, c), ignored], dict(entropy, label_smoothing=0.1), names=both)
        case("cross_entropy", lambda x, y, w: F.cross_entropy(x, y, weight=w),
             [normal(n, c), labels, uniform(0.2, 2, c)], entropy, names=both + ["weight"],
             constant=(2,))
        case("cross_entropy", F.cross_entropy, [normal(2, c, 3, 4), integers(c, 2, 3, 4)], entropy,
             names=both)


def optim(directory):
    """The parameter after each of six steps with given gradients."""
    optimizers = [
        ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1}),
        ("Adam", {"lr": 0.01}), ("Adam", {"lr": 0.01, "betas": [0.8, 0.99], "weight_decay": 0.1}),
        ("Adam", {"lr": 0.01, "amsgrad": True}), ("AdamW", {"lr": 0.01, "weight_decay": 0.05}),
        ("RMSprop", {"lr": 0.01}), ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True}),
        ("Adagrad", {"lr": 0.05}), ("Adadelta", {"lr": 1.0}),
    ]
    with File(directory, "optim") as file:
        for name, args in optimizers:
            for _ in VARIANTS:
                start, gradients = normal(4, 3), normal(6, 4, 3)
                p = torch.from_numpy(start).double().requires_grad_(True)
                optimizer = getattr(torch.optim, name)([p], **args)
                steps = []
                for g in gradients:
                    p.grad = torch.from_numpy(g).double()
                    optimizer.step()
                    steps.append(p.detach().numpy().copy())
                group = file.group(name, args, (1e-4, 1e-5))
                group["param"], group["grads"], group["steps"] = start, gradients, np.stack(steps)
        print(f"optim: {file.count} cases")


def write(directory):
    """Writes the nine files into the directory."""
    rng.seed(SEED)
    for name, family in [("unary", unary), ("binary", binary), ("reduce", reduce),
                         ("shape", shapes), ("linalg", linalg), ("conv", conv), ("norm", norm),
                         ("loss", loss)]:
        with Family(directory, name) as case:
            family(case)
    optim(directory)
