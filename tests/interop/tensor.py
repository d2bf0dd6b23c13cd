# SPDX-License-Identifier: Apache-2.0
"""A consumer and a producer of DLPack's capsules in ctypes. The structs are copied from dlpack.h 1.3."""
import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p


class DLDevice(ctypes.Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class DLManagedTensor(ctypes.Structure):
    pass


class DLManagedTensorVersioned(ctypes.Structure):
    pass


DLManagedTensor._fields_ = [("tensor", DLTensor), ("context", c_void_p), ("deleter", ctypes.CFUNCTYPE(None, POINTER(DLManagedTensor)))]
DLManagedTensorVersioned._fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p),
                                     ("deleter", ctypes.CFUNCTYPE(None, POINTER(DLManagedTensorVersioned))), ("flags", c_uint64),
                                     ("tensor", DLTensor)]

api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
NAMES = (b"dltensor_versioned", b"dltensor")
USED = (b"used_dltensor_versioned", b"used_dltensor")


class Taken:
    """A tensor that this consumer owns until close()."""

    def __init__(self, capsule):
        self.versioned = bool(api.PyCapsule_IsValid(capsule, NAMES[0]))
        struct = DLManagedTensorVersioned if self.versioned else DLManagedTensor
        self.pointer = ctypes.cast(api.PyCapsule_GetPointer(capsule, NAMES[0] if self.versioned else NAMES[1]), POINTER(struct))
        api.PyCapsule_SetName(capsule, USED[0] if self.versioned else USED[1])
        tensor = self.pointer.contents.tensor
        self.address = (tensor.data or 0) + tensor.byte_offset
        self.device = (tensor.device.type, tensor.device.id)
        self.dtype = (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
        self.shape = tuple(tensor.shape[:tensor.ndim])
        self.strides = tuple(tensor.strides[:tensor.ndim])
        self.version = (self.pointer.contents.major, self.pointer.contents.minor) if self.versioned else None
        self.flags = self.pointer.contents.flags if self.versioned else None

    def close(self):
        self.pointer.contents.deleter(self.pointer)


OFFERED = {}  # the arrays that consumers hold, by the tensor's address
delete_versioned = DLManagedTensorVersioned._fields_[3][1](lambda pointer: OFFERED.pop(ctypes.addressof(pointer.contents)))
delete_legacy = DLManagedTensor._fields_[2][1](lambda pointer: OFFERED.pop(ctypes.addressof(pointer.contents)))


class Offered:
    """Device memory that `order(consumer)` makes ready for the consumer's stream, as a producer of any library offers it."""

    def __init__(self, owner, address, shape, dtype, order, device=(2, 0), version=(1, 3), flags=0):
        self.owner, self.address, self.shape, self.dtype, self.order = owner, address, shape, dtype, order
        self.device, self.version, self.flags = device, version, flags
        self.asked = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append(stream)
        if stream != -1:
            self.order(stream)
        managed = DLManagedTensor() if max_version is None else DLManagedTensorVersioned()
        strides = [1]
        for extent in reversed(self.shape[1:]):
            strides.insert(0, strides[0] * extent)
        extents, strides = (c_int64 * len(self.shape))(*self.shape), (c_int64 * len(self.shape))(*strides)
        managed.tensor = DLTensor(self.address - 8, DLDevice(*self.device), len(self.shape), DLDataType(*self.dtype), extents, strides, 8)
        if max_version is None:
            managed.deleter = delete_legacy
        else:
            (managed.major, managed.minor), managed.flags, managed.deleter = self.version, self.flags, delete_versioned
        OFFERED[ctypes.addressof(managed)] = (managed, extents, strides, self.owner)
        return api.PyCapsule_New(ctypes.addressof(managed), NAMES[max_version is None], None)
