"""Tensors go between PyTorch and libaothost.so without a copy: inputs, gradients and a parameter, by DLPack alone.

    dlpack_torch.py LIBRARY PIPELINE MODEL      for the mlp: inputs f32[8, 16] and i64[8], a loss
"""
import ctypes
import sys

import torch

lib = ctypes.CDLL(sys.argv[1])
api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
NEWER, OLDER, USED = b"dltensor_versioned", b"dltensor", b"used_dltensor"


class Tensor(ctypes.Structure):  # aot_tensor_t
    _fields_ = [("data", ctypes.c_void_p), ("nbytes", ctypes.c_uint64), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("device", ctypes.c_int32), ("device_index", ctypes.c_int32), ("memory", ctypes.c_uint32),
                ("encoding", ctypes.c_uint32), ("offset", ctypes.c_int64), ("sizes", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("reserved", ctypes.c_uint64 * 2)]


def call(name, *arguments):
    status = getattr(lib, name)(*arguments)
    if status:
        lib.aothost_messages.restype = ctypes.c_char_p
        sys.exit(f"{name}: {status}: {lib.aothost_messages(h).decode() if h else ''}")


def look_at(tensor):
    """What aothost sees of a tensor of torch's; the capsule keeps it alive."""
    capsule, seen = tensor.__dlpack__(max_version=(1, 0)), Tensor()
    call("aothost_from_dlpack", h, ctypes.c_void_p(api.PyCapsule_GetPointer(capsule, NEWER)), ctypes.byref(seen))
    assert seen.data == tensor.data_ptr()
    return seen, capsule


def take(function, *arguments):
    """A tensor of aothost's in torch."""
    managed = ctypes.c_void_p()
    call(function, *arguments, ctypes.byref(managed))
    return torch.from_dlpack(api.PyCapsule_New(managed, NEWER, None))


torch.manual_seed(0)
x, y = torch.randn(8, 16), torch.arange(8) % 10
model = torch.export.load(sys.argv[3]).module()
loss = model(x, y)
loss.backward()
gradients = dict((name, p.grad) for name, p in model.named_parameters())

h = None
handle = ctypes.c_void_p()
config = (ctypes.c_uint64 * 16)()  # aothost_config_t: struct_size and the model alone
ctypes.memmove(config, (ctypes.c_uint32 * 4)(72, 0, 0, 0), 16)
path = ctypes.c_char_p(sys.argv[3].encode())
ctypes.memmove(ctypes.byref(config, 16), ctypes.byref(path), 8)
status = lib.aothost_open(sys.argv[2].encode(), ctypes.byref(config), ctypes.byref(handle))
h = handle
assert status == 0, status
call("aothost_compile", h, 0)

(seen_x, keep_x), (seen_y, keep_y) = look_at(x), look_at(y)
c = ctypes.c_void_p()
call("aothost_call_open", h, ctypes.byref(c))
call("aothost_call_bind", c, b"input.0", ctypes.byref(seen_x))
call("aothost_call_bind", c, b"input.1", ctypes.byref(seen_y))
mine = {}
for name, expected in gradients.items():  # gradients into memory of torch's
    mine[name] = torch.zeros_like(expected), None
    seen, capsule = look_at(mine[name][0])
    mine[name] = mine[name][0], (seen, capsule)
    call("aothost_call_bind", c, b"grad." + name.encode(), ctypes.byref(seen))
for turn in range(2):
    call("aothost_call_forward", c, None, 0, 0)
    call("aothost_call_backward", c, None, 0)
    torch.testing.assert_close(take("aothost_call_to_dlpack", c, b"output.0"), loss.detach())
    for name, expected in gradients.items():
        torch.testing.assert_close(mine[name][0], expected)

# A parameter is the memory itself: what torch writes, the next forward reads.
name = next(iter(gradients))
parameter = take("aothost_to_dlpack", h, b"param." + name.encode())
torch.testing.assert_close(parameter, dict(model.named_parameters())[name].detach())
with torch.no_grad():
    parameter.mul_(0.5)
    dict(model.named_parameters())[name].mul_(0.5)
call("aothost_call_forward", c, None, 0, 0)
torch.testing.assert_close(take("aothost_call_to_dlpack", c, b"output.0"), model(x, y).detach())
lib.aothost_close(h)
parameter.add_(1)  # lives on
del parameter

# The older form, from torch and to it.
older = torch.utils.dlpack.to_dlpack(torch.arange(6.0).reshape(2, 3))
managed, back = ctypes.c_void_p(), ctypes.c_void_p()
call("aothost_dlpack_upgrade", ctypes.c_void_p(api.PyCapsule_GetPointer(older, OLDER)), ctypes.byref(managed))
api.PyCapsule_SetName(ctypes.py_object(older), USED)
call("aothost_dlpack_downgrade", managed, ctypes.byref(back))
assert torch.from_dlpack(api.PyCapsule_New(back, OLDER, None)).tolist() == [[0, 1, 2], [3, 4, 5]]
print("dlpack with torch", torch.__version__)
