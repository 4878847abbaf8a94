"""aothost's side of bench/torch, run by run.py: libaothost.so driven from Python without any library but the standard one.

aothost_side.py LIBRARY PLUGINS ARCHIVE INPUTS THREADS DTYPE DEVICE [SETTING ..]
    a worker (worker.py): trains the archive with train.yaml, its values replaced by settings
"""

from __future__ import annotations

import ctypes
import json
import pathlib
import struct
import sys

from worker import serve

RATE = 1e-4
OPTIMIZER, STEP = 1, 2  # AOTHOST_OPTIMIZER, AOTHOST_STEP
DTYPES = {"U8": 1, "I32": 4, "I64": 5, "F16": 6, "F32": 7, "F64": 8, "BOOL": 12, "BF16": 13}  # safetensors' to aot_dtype


class Config(ctypes.Structure):  # aothost_config_t
    _fields_ = [("struct_size", ctypes.c_uint32), ("n_sets", ctypes.c_uint32), ("n_plugin_dirs", ctypes.c_uint32),
                ("flags", ctypes.c_uint32), ("model", ctypes.c_char_p), ("sets", ctypes.POINTER(ctypes.c_char_p)),
                ("plugin_dirs", ctypes.POINTER(ctypes.c_char_p)), ("message", ctypes.c_void_p), ("message_self", ctypes.c_void_p),
                ("model_data", ctypes.c_void_p), ("model_nbytes", ctypes.c_uint64)]


class Tensor(ctypes.Structure):  # aot_tensor_t
    _fields_ = [("data", ctypes.c_void_p), ("nbytes", ctypes.c_uint64), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("device", ctypes.c_int32), ("device_index", ctypes.c_int32), ("memory", ctypes.c_uint32),
                ("encoding", ctypes.c_uint32), ("offset", ctypes.c_int64), ("sizes", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("reserved", ctypes.c_uint64 * 2)]


def read_inputs(path: str):
    """Tensors input.0, input.1, .. of a safetensors file."""
    content = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + size])
    rows = [header[f"input.{k}"] for k in range(sum(key.startswith("input.") for key in header))]
    tensors, memory = (Tensor * len(rows))(), []
    for tensor, row in zip(tensors, rows):
        begin, end = row["data_offsets"]
        data = ctypes.create_string_buffer(content[8 + size + begin:8 + size + end], end - begin)
        tensor.data, tensor.nbytes = ctypes.cast(data, ctypes.c_void_p), end - begin
        tensor.dtype, tensor.rank = DTYPES[row["dtype"]], len(row["shape"])
        tensor.sizes = (ctypes.c_int64 * len(row["shape"]))(*row["shape"])
        memory.append(data)
    return tensors, memory


def texts(*lines: str):
    return (ctypes.c_char_p * len(lines))(*(line.encode() for line in lines))


class Training:
    """An archive that train.yaml trains. What goes wrong ends the process with what libaothost says of it."""

    def __init__(self, library: str, plugins: str, archive: str, threads: str, dtype: str, device: str, pipeline: str = "train.yaml",
                 more: tuple[str, ...] = ()):
        self.lib, self.handle, self.loss = ctypes.CDLL(library), ctypes.c_void_p(), Tensor()
        self.lib.aothost_messages.restype = ctypes.c_char_p
        self.lib.aothost_step.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_double]
        machine = [f"stages.backend-cpu.threads={threads}"]
        if device == "cuda":
            machine = ["vars.backend=backend-cuda", "run.device=cuda", "vars.layout=convolutions"]
        sets = texts(f"run.train.precision={dtype}", *machine, *more)
        config = Config(struct_size=ctypes.sizeof(Config), n_sets=len(sets), sets=sets, model=archive.encode(),
                        n_plugin_dirs=1, plugin_dirs=texts(plugins))
        self.call("aothost_open", str(pathlib.Path(__file__).with_name(pipeline)).encode(), ctypes.byref(config), ctypes.byref(self.handle))
        self.call("aothost_compile", self.handle, OPTIMIZER | STEP)

    def call(self, name: str, *arguments) -> None:
        if status := getattr(self.lib, name)(*arguments):
            sys.exit(f"{name}: {status}\n{self.lib.aothost_messages(self.handle).decode() if self.handle else ''}")

    def step(self, inputs=None, rate: float = RATE) -> float:
        """The loss before a step; without inputs on those of the step before, which stayed where they are."""
        self.call("aothost_step", self.handle, inputs, len(inputs) if inputs else 0, rate)
        self.call("aothost_get", self.handle, b"output.0", ctypes.byref(self.loss))
        return ctypes.cast(self.loss.data, ctypes.POINTER(ctypes.c_float))[self.loss.offset]


def main(library: str, plugins: str, archive: str, inputs_path: str, threads: str, dtype: str, device: str, *settings: str) -> None:
    inputs, memory = read_inputs(inputs_path)
    training = []

    def start() -> None:
        training.append(Training(library, plugins, archive, threads, dtype, device, more=settings))

    def step() -> float:
        return training[0].step(given.pop() if given else None)

    given = [inputs]  # once: the batch stays on the device, as PyTorch's does
    serve(lambda: None, start, step, device)


if __name__ == "__main__":
    main(*sys.argv[1:])
