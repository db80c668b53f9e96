#!/usr/bin/env python3
"""Writes the small files of weights that tests/serialization reads, each with the program whose format it is.

usage: weights.py [DIR]     default: weights/ beside this script's folder

Needs PyTorch 2.15.0, numpy and safetensors (`pip install torch==2.15.0 numpy safetensors`). Each value says which tensor it belongs to
and where it stands in it, so that none can pass for another: element i of the tensor number k is 100 k + i.
"""
import collections
import os
import pathlib
import sys
import zipfile

import numpy
import safetensors.torch
import torch


class Body(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 3)
        self.norm = torch.nn.BatchNorm1d(3)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Body()
        self.head = torch.nn.Linear(3, 2)


def numbered(model):
    with torch.no_grad():
        for k, tensor in enumerate(model.state_dict().values(), 1):
            tensor.copy_(torch.arange(tensor.numel()).reshape(tensor.shape) + 100 * k)
    return model


DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
          "i32": torch.int32, "u8": torch.uint8, "bool": torch.bool}


def of_each_dtype():
    """A tensor of shape (2, 3) for each dtype, with the values 0 to 5; a scalar, and one without elements."""
    tensors = {name: torch.arange(6).reshape(2, 3).to(dtype) for name, dtype in DTYPES.items()}
    tensors["scalar"] = torch.tensor(7.5)
    tensors["empty"] = torch.zeros(3, 0)
    return tensors


def views():
    """Tensors that share one storage of 0 to 11, or reach it in another order."""
    base = torch.arange(12, dtype=torch.float32)
    return collections.OrderedDict(
        whole=base, matrix=base.reshape(3, 4), transposed=base.reshape(3, 4).t(), row=base.reshape(3, 4)[1], every_third=base[1::3],
        repeated=base[2:4].reshape(2, 1).expand(2, 3), channels_last=torch.arange(16.0).reshape(1, 2, 2, 4).contiguous(
            memory_format=torch.channels_last))


class Malicious:
    def __reduce__(self):
        return os.system, ("touch /tmp/tenon-was-here",)


def write_torch(folder):
    net = numbered(Net())
    states = net.state_dict()
    torch.save(states, folder / "net.pt")
    torch.save(torch.nn.DataParallel(net).state_dict(), folder / "net_wrapped.pt")
    torch.save(states, folder / "net_protocol_5.pt", pickle_protocol=5)
    torch.save(states, folder / "net_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(dict(net.named_parameters()), folder / "parameters.pt")
    torch.serialization.set_crc32_options(False)
    torch.save(states, folder / "net_without_crc.pt")
    torch.serialization.set_crc32_options(True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    torch.save({"model": states, "optimizer": optimizer.state_dict(), "epoch": 3, "loss": 0.25, "done": False, "note": None,
                "ema": {"model": states, "decay": 0.5}, "shape": torch.Size([2, 3]), "seed": 1 << 80}, folder / "nested.pt")
    torch.save(of_each_dtype(), folder / "dtypes.pt")
    torch.save({**{name: torch.ones(2).to(dtype) for name, dtype in (("i8", torch.int8), ("u16", torch.uint16), ("c64", torch.complex64))},
                "good": torch.ones(2)}, folder / "other_dtypes.pt")
    torch.save(views(), folder / "views.pt")
    torch.save(torch.ones(2), folder / "tensor.pt")
    torch.save({"weight": torch.ones(2), "evil": Malicious()}, folder / "malicious.pt")
    torch.save(net, folder / "whole_model.pt")
    big_endian(folder / "net.pt", folder / "big_endian.pt")


def big_endian(source, target):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            new.writestr(entry.filename, b"big" if entry.filename.endswith("byteorder") else old.read(entry))


def write_safetensors(folder):
    net = numbered(Net())
    safetensors.torch.save_file(net.state_dict(), folder / "net.safetensors", metadata={"format": "pt"})
    safetensors.torch.save_file(torch.nn.DataParallel(net).state_dict(), folder / "net_wrapped.safetensors")
    safetensors.torch.save_file(of_each_dtype(), folder / "dtypes.safetensors")
    safetensors.torch.save_file({"i8": torch.ones(2).to(torch.int8), "good": torch.ones(2)}, folder / "other_dtypes.safetensors")


def write_numpy(folder):
    states = {key: tensor.numpy() for key, tensor in numbered(Net()).state_dict().items()}
    numpy.savez(folder / "net.npz", **states)
    numpy.savez_compressed(folder / "net_wrapped.npz", **{"module." + key: values for key, values in states.items()})
    plain = {name: tensor.numpy() for name, tensor in of_each_dtype().items() if name != "bf16"}
    numpy.savez_compressed(folder / "dtypes.npz", **plain)
    matrix = numpy.arange(6, dtype="<f4").reshape(2, 3)
    numpy.save(folder / "matrix.npy", matrix)
    numpy.save(folder / "fortran.npy", numpy.asfortranarray(matrix))
    numpy.save(folder / "big_endian.npy", matrix.astype(">f4"))
    numpy.save(folder / "int16.npy", matrix.astype("<i2"))
    numpy.save(folder / "object.npy", numpy.array([{}, []], dtype=object), allow_pickle=True)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent / "weights"
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder)
    write_torch(folder)
    write_numpy(folder)


if __name__ == "__main__":
    main()
