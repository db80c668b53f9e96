"""Recurrent networks."""

import torch

from .common import Cases, LOOSE, V, coin, f, number


def write():
    fam = Cases("recurrent", LOOSE)
    for _ in V:
        for op, kernel, gates, more in [
            ("RNN", torch.rnn_tanh, 1, {"nonlinearity": "tanh"}),
            ("RNN", torch.rnn_relu, 1, {"nonlinearity": "relu"}),
            ("LSTM", torch.lstm, 4, {}),
            ("GRU", torch.gru, 3, {}),
        ]:
            for layers in (1, 2):
                for both in (False, True):
                    t, n, i, h = number(1, 6), number(1, 4), number(1, 5), number(2, 5)
                    bias, first, ways = coin(0.8), coin(0.4), 2 if both else 1
                    a = dict(
                        more,
                        input_size=i,
                        hidden_size=h,
                        num_layers=layers,
                        bidirectional=both,
                        bias=bias,
                        batch_first=first,
                    )
                    ins, names = [
                        f(*([n, t, i] if first else [t, n, i])),
                        f(layers * ways, n, h),
                    ], ["input", "h0"]
                    if op == "LSTM":
                        ins.append(f(layers * ways, n, h))
                        names.append("c0")
                    states = len(ins) - 1
                    for layer in range(layers):
                        for way in ["", "_reverse"][:ways]:
                            for kind, s in [
                                ("weight_ih", [gates * h, i if layer == 0 else ways * h]),
                                ("weight_hh", [gates * h, h]),
                                ("bias_ih", [gates * h]),
                                ("bias_hh", [gates * h]),
                            ]:
                                if kind[0] == "b" and not bias:
                                    continue
                                ins.append(
                                    f(s, lo=-0.3 if kernel is torch.rnn_relu else -0.7, hi=0.7)
                                )  # relu is to stay alive
                                names.append(f"{kind}_l{layer}{way}")

                    def net(x, *t):
                        state = t[:2] if states == 2 else t[0]
                        return kernel(
                            x, state, list(t[states:]), bias, layers, 0.0, True, both, first
                        )

                    fam.add(op, ins, a, " ".join(names), net)
    fam.close(fam.name)
