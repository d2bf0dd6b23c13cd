# SPDX-License-Identifier: Apache-2.0
"""Device memory: numba-cuda by the CUDA Array Interface, cuda.core and the protocol in ctypes by DLPack, in both directions, with the
producer's work not yet complete. All use the same device: the CPU device as a stand-alone libcuda.so.1."""
import gc
import importlib.metadata

import numpy as np
import quern_interop
import tensor
from cuda.core.utils import StridedMemoryView
from host_arrays import refused
from numba import cuda

KDL_CUDA = 2


def to_device(session, array):
    return session.to_device(quern_interop.from_dlpack(array))


class Interface:
    """An object that has only the interface."""

    def __init__(self, owner, address, shape, typestr, **rest):
        self.owner = owner
        self.__cuda_array_interface__ = dict(shape=shape, typestr=typestr, data=(address, False), version=3, **rest)


def read(taken, typestr="<f4"):
    """Reads, with numba-cuda, the memory at the address of a tensor."""
    size = int(typestr[-1])
    strides = tuple(size * stride for stride in taken.strides)
    return cuda.as_cuda_array(Interface(taken, taken.address, taken.shape, typestr, strides=strides)).copy_to_host()


def array_interface(session):
    """numba-cuda's views of quern's arrays, and quern's views of numba-cuda's arrays."""
    device = to_device(session, np.arange(10, dtype=np.float32))
    assert cuda.is_cuda_array(device)
    view = cuda.as_cuda_array(device)
    assert (view.copy_to_host() == np.arange(10)).all()
    view.copy_to_device(np.full(10, 7, np.float32))
    assert device.copy_to_host().sum() == 70
    strided = cuda.as_cuda_array(device.every_other())
    assert strided.shape == (5,) and strided.strides == (8,)
    theirs = cuda.to_device(np.arange(6, dtype=np.float32))
    mine = session.as_cuda_array(theirs)
    mine.add(2.0)
    assert (theirs.copy_to_host() == np.arange(6) + 2).all()
    target = to_device(session, np.zeros(6, np.float32))
    target.copy_from_cuda_array(theirs)
    assert target.copy_to_host().sum() == 27
    brain = Interface(theirs, theirs.__cuda_array_interface__["data"][0], (12,), "<V2")
    assert session.as_cuda_array(brain).dtype == "bfloat16"


def array_interface_with_streams(session):
    """A producer's stream that is not ordered with the default stream. It is blocked, and continues later."""
    stream = quern_interop.FreeStream(session)
    device = to_device(session, np.zeros(8, np.float32))
    stream.stop()
    device.assign(5, stream)
    made = device.made_on(stream)
    assert made.__cuda_array_interface__["stream"] == stream.handle
    assert cuda.as_cuda_array(device).copy_to_host().sum() == 0, "not made yet"
    stream.go_on()
    view = cuda.as_cuda_array(made)
    assert stream.query(), "numba-cuda waited"
    assert view.copy_to_host().sum() == 40

    # The interface of numba-cuda's array names its stream, and quern waits for it.
    theirs_on = cuda.external_stream(stream.handle)
    theirs = cuda.to_device(np.zeros(8, np.float32), stream=theirs_on)
    stream.synchronize()
    assert theirs.__cuda_array_interface__["stream"] == stream.handle
    source = cuda.pinned_array(8, np.float32)
    source[:] = 3
    stream.stop()
    theirs.copy_to_device(source, stream=theirs_on)
    assert session.as_cuda_array(theirs, sync=False).copy_to_host().sum() == 0, "not made yet"
    target = to_device(session, np.zeros(8, np.float32))
    mine = quern_interop.FreeStream(session)
    target.copy_from_cuda_array(theirs, mine)
    assert not mine.query(), "the copy waits on quern's stream, quern does not"
    stream.go_on()
    mine.synchronize()
    assert target.copy_to_host().sum() == 24
    assert session.as_cuda_array(theirs).copy_to_host().sum() == 24


def capsules(session):
    """Checks the contents of a capsule in both ABIs. The memory lives until the consumer is done."""
    source = np.arange(24, dtype=np.float32)
    for request, version in (({"max_version": (1, 3)}, (1, 3)), ({"max_version": (2, 0)}, (1, 3)), ({}, None)):
        device = to_device(session, source)
        address = device.address
        taken = tensor.Taken(device.every_other().__dlpack__(stream=None, **request))
        assert taken.version == version and taken.flags in (0, None)
        assert taken.address == address and taken.device == (KDL_CUDA, 0) and taken.dtype == (2, 32, 1)
        assert taken.shape == (12,) and taken.strides == (2,)
        del device
        gc.collect()
        assert (read(taken) == source[::2]).all(), "kept alive"
        taken.close()
    device = to_device(session, source)
    for _ in range(3):
        device.__dlpack__()  # a capsule that is not consumed
    copied = tensor.Taken(device.__dlpack__(max_version=(1, 0), copy=True))
    assert copied.flags == 2 and copied.address != device.address and (read(copied) == source).all()
    copied.close()
    refused(lambda: device.__dlpack__(stream=0), "forbids")


def dlpack_to_numpy(session):
    """NumPy receives device memory as a copy on the host, if it requests that."""
    device = to_device(session, np.arange(6, dtype=np.float16))
    assert (np.from_dlpack(device, device="cpu") == np.arange(6)).all()
    refused(lambda: np.from_dlpack(device), "device", "upported")
    refused(lambda: np.from_dlpack(device, device="cpu", copy=False), "copy")


def dlpack_to_cuda_core(session):
    source = np.arange(12, dtype=np.int16)
    device = to_device(session, source)
    view = StridedMemoryView.from_dlpack(device, stream_ptr=-1)
    assert view.ptr == device.address and tuple(view.shape) == (12,) and view.dtype == np.int16
    assert view.device_id == 0 and view.is_device_accessible and not view.readonly
    part = StridedMemoryView.from_dlpack(device.every_other(), stream_ptr=1)
    assert tuple(part.shape) == (6,) and tuple(part.strides) == (2,)
    assert StridedMemoryView.from_any_interface(device, stream_ptr=-1).ptr == device.address


def dlpack_out_with_streams(session):
    """Only the consumer's stream waits for the producer's."""
    for export in ("ctypes", "cuda.core"):
        producer, consumer, other = (quern_interop.FreeStream(session) for _ in range(3))
        device = to_device(session, np.zeros(8, np.float32))
        producer.stop()
        device.assign(5, producer)
        made = device.made_on(producer)
        if export == "ctypes":
            taken = tensor.Taken(made.__dlpack__(stream=consumer.handle, max_version=(1, 3)))
            assert taken.address == device.address
        else:
            taken = StridedMemoryView.from_dlpack(made, stream_ptr=consumer.handle)
            assert taken.ptr == device.address
        assert not consumer.query() and other.query()
        assert tensor.Taken(made.__dlpack__(stream=-1, max_version=(1, 3))).address == device.address
        assert other.query()
        # numba-cuda copies on the consumer's stream, after the event.
        on_consumer = cuda.external_stream(consumer.handle)
        target = cuda.pinned_array(8, np.float32)
        target[:] = -1
        cuda.as_cuda_array(device, sync=False).copy_to_host(target, stream=on_consumer)
        assert (target == -1).all()
        producer.go_on()
        consumer.synchronize()
        assert (target == 5).all()


def dlpack_in(session):
    """numba-cuda's memory, offered by a producer that orders its stream before the consumer's."""
    producer, consumer = (quern_interop.FreeStream(session) for _ in range(2))
    on_producer = cuda.external_stream(producer.handle)
    theirs = cuda.to_device(np.zeros((2, 4), np.float32), stream=on_producer)
    producer.synchronize()
    address = theirs.__cuda_array_interface__["data"][0]

    def order(stream):
        event = cuda.event(timing=False)
        event.record(on_producer)
        event.wait(cuda.external_stream(stream))

    source = cuda.pinned_array((2, 4), np.float32)
    for value, versioned in ((3, True), (4, False)):
        source[:] = value
        offered = tensor.Offered(theirs, address, (2, 4), (2, 32, 1), order)
        producer.stop()
        theirs.copy_to_device(source, stream=on_producer)
        mine = session.from_dlpack(offered, stream=consumer.handle, versioned=versioned)
        assert offered.asked == [consumer.handle] and mine.address == address and mine.dtype == "float32"
        assert not producer.query() and not consumer.query(), "nobody waited"
        target = mine.copy_on(consumer)
        producer.go_on()
        consumer.synchronize()
        assert target.sum() == 8 * value
        assert len(tensor.OFFERED) == 1
        del mine
        gc.collect()
        assert not tensor.OFFERED, "given back"
    assert session.from_dlpack(tensor.Offered(theirs, address, (8,), (4, 16, 1), order), stream=-1).dtype == "bfloat16"
    assert session.from_dlpack(tensor.Offered(theirs, address, (8,), (2, 32, 1), order, flags=1), stream=-1).read_only
    assert session.from_dlpack(tensor.Offered(theirs, address, (8,), (2, 32, 1), order, version=(1, 99)), stream=-1).address == address
    for words, change in (("float8_e4m3fn", {"dtype": (10, 8, 1)}), ("2 lanes of float32", {"dtype": (2, 32, 2)}), ("ROCm", {"device": (10, 0)}),
                          ("version 2.0", {"version": (2, 0)})):
        offered = tensor.Offered(theirs, address, (8,), change.get("dtype", (2, 32, 1)), order, **{k: v for k, v in change.items() if k != "dtype"})
        refused(lambda: session.from_dlpack(offered, stream=-1), words)
    gc.collect()
    assert not tensor.OFFERED, "given back, what was refused as well"
    host, device = session.mapped(4, 2.0)
    refused(lambda: session.from_dlpack(host, stream=1), "ordinary host memory")
    refused(lambda: quern_interop.from_dlpack(device), "not in host memory")


def check(session):
    for part in (array_interface, array_interface_with_streams, capsules, dlpack_to_numpy, dlpack_to_cuda_core, dlpack_out_with_streams, dlpack_in):
        part(session)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numba-cuda", "cuda-core"))
    return f"{versions} share device arrays by the CUDA Array Interface and by DLPack, ordered after their producers"
