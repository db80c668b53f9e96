#!/usr/bin/env python3
"""Writes the small files of weights that tests/serialization reads, each with the program whose format it is.

usage: weights.py [DIR]     default: weights/ beside this script's folder

Needs PyTorch 2.15.0, numpy, safetensors and h5py (`pip install torch==2.15.0 numpy safetensors h5py`). Each value says which tensor it belongs to
and where it stands in it, so that none can pass for another: element i of the tensor number k is 100 k + i.
"""
import collections
import os
import pathlib
import sys
import zipfile

import h5py
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


def forms_of(net):
    """The state of the model: plain, wrapped as a whole, with a part of it wrapped, and wrapped twice."""
    wrap = torch.nn.DataParallel
    plain, whole, twice = net.state_dict(), wrap(net).state_dict(), wrap(wrap(net)).state_dict()
    nested = Net()
    nested.load_state_dict(plain)
    nested.body = wrap(nested.body)
    return {"net": plain, "net_wrapped": whole, "net_nested": nested.state_dict(), "net_wrapped_twice": twice}


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
    for name, form in forms_of(net).items():
        torch.save(form, folder / f"{name}.pt")
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
    torch.save({f"w{i}": torch.zeros(1, dtype=torch.float64).expand(1 << 59) for i in range(5)}, folder / "expanded.pt")
    torch.save(torch.ones(2), folder / "tensor.pt")
    torch.save({"weight": torch.ones(2), "evil": Malicious()}, folder / "malicious.pt")
    torch.save(net, folder / "whole_model.pt")
    big_endian(folder / "net.pt", folder / "big_endian.pt")


def big_endian(source, target):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            new.writestr(entry.filename, b"big" if entry.filename.endswith("byteorder") else old.read(entry))


def write_safetensors(folder):
    for name, form in forms_of(numbered(Net())).items():
        safetensors.torch.save_file(form, folder / f"{name}.safetensors", metadata={"format": "pt"} if name == "net" else None)
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


def bfloat16():
    """The type that HDF5 2.0 calls H5T_FLOAT_BFLOAT16LE."""
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_size(2)
    kind.set_ebias(127)
    return kind


def write_hdf5(folder):
    forms = {name: {key: tensor.numpy() for key, tensor in form.items()} for name, form in forms_of(numbered(Net())).items()}
    for name in ("net", "net_nested", "net_wrapped_twice"):
        with h5py.File(folder / f"{name}.h5", "w") as file:
            for key, values in forms[name].items():
                file[key] = values
    states = forms["net"]
    with h5py.File(folder / "net_wrapped.h5", "w", libver="v110") as file:  # groups, packed, in the newer layout
        for key, values in states.items():
            packing = {"compression": "gzip", "shuffle": True, "fletcher32": True} if values.ndim else {}
            file.create_dataset("module/" + key.replace(".", "/"), data=values, **packing)
    with h5py.File(folder / "keras.h5", "w", track_order=True) as file:
        file.attrs["layer_names"] = ["dense", "dense_1"]
        for i, layer in enumerate(("dense", "dense_1")):
            group = file.create_group(f"{layer}/{layer}", track_order=True)
            group["kernel:0"] = numpy.arange(6, dtype="f4").reshape(2, 3) + 10 * i
            group["bias:0"] = numpy.arange(3, dtype="f4") + 10 * i
    with h5py.File(folder / "dtypes.h5", "w") as file:
        for name, tensor in of_each_dtype().items():
            if name != "bf16":
                file[name] = tensor.numpy()
        space = h5py.h5s.create_simple((2, 3))
        data = h5py.h5d.create(file.id, b"bf16", bfloat16(), space)
        data.write(space, space, of_each_dtype()["bf16"].view(torch.uint16).numpy(), mtype=bfloat16())
    with h5py.File(folder / "layouts.h5", "w") as file:
        values = numpy.arange(60).reshape(3, 4, 5)
        for kind in (">f4", ">f8", ">f2", ">i8", ">i4", "<f4"):
            file[kind.replace(">", "big_").replace("<", "little_")] = values.astype(kind)
        file.create_dataset("chunks", data=values.astype("f4"), chunks=(2, 3, 2))
        file.create_dataset("deflate", data=values.astype("f4"), chunks=(2, 3, 2), compression="gzip", compression_opts=9)
        file.create_dataset("resizable", data=values.astype("f4"), maxshape=(None, None, 5), chunks=(1, 4, 5), shuffle=True)
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((3, 4, 5))
        h5py.h5d.create(file.id, b"compact", h5py.h5t.IEEE_F32LE, space, compact).write(space, space, values.astype("f4"))
        file["again"] = file["chunks"]  # a hard link
    with h5py.File(folder / "strange.h5", "w") as file:
        file["good"] = numpy.ones(2, "f4")
        file["text"] = "some text"
        file["texts"] = numpy.array([b"a", b"bc"])
        file["complex"] = numpy.ones(2, "c8")
        file["record"] = numpy.zeros(2, [("a", "f4"), ("b", "i4")])
        file["empty"] = h5py.Empty("f4")
        file["type"] = numpy.dtype("f4")
        file["@part"] = numpy.ones(2, "f4")
        file["group/back"] = file["/"]  # a cycle
        file["group/self"] = file["group"]
        file["soft"] = h5py.SoftLink("/good")
        file["dangling"] = h5py.SoftLink("/nowhere")
        file["other_file"] = h5py.ExternalLink("/etc/passwd", "/good")
        file["int8"] = numpy.ones(2, "i1")
        file["uint16"] = numpy.ones(2, "u2")
        file["long_double"] = numpy.ones(2, numpy.longdouble)
        file["nine"] = numpy.ones((1,) * 9, "f4")
        file.create_dataset("lzf", data=numpy.ones(8, "f4"), compression="lzf")
        file.create_dataset("scaled", data=numpy.ones(8, "i4"), scaleoffset=1)
        file.create_dataset("never_written", shape=(1 << 40,), dtype="f4")
        file.create_dataset("half_written", shape=(4,), dtype="f4", chunks=(2,))[:2] = 1
        file.create_dataset("outside", shape=(2,), dtype="f4", external=[("/etc/passwd", 0, 8)])
        virtual = h5py.VirtualLayout(shape=(2,), dtype="f4")
        virtual[:] = h5py.VirtualSource("/etc/passwd", "good", shape=(2,))
        file.create_virtual_dataset("virtual", virtual)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent / "weights"
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder)
    write_torch(folder)
    write_numpy(folder)
    write_hdf5(folder)


if __name__ == "__main__":
    main()
