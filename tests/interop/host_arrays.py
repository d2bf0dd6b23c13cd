# SPDX-License-Identifier: Apache-2.0
"""Host memory by DLPack: NumPy as consumer and as producer, in both ABIs."""
import gc

import numpy as np
import quern_interop


def refused(action, *words):
    try:
        action()
    except Exception as error:
        assert any(word in str(error) for word in words), error
        return
    raise SystemExit(f"not refused, but {words[0]} was to be named")


def numpy_takes(session):
    """Nothing is copied, and the memory is kept alive."""
    host, device = session.mapped(10, 3.0)
    array = np.from_dlpack(host)
    assert array.shape == (10,) and array.dtype == np.float32 and (array == 3).all()
    device.add(1.0)
    assert (array == 4).all(), "the same memory"
    array[5] = 100
    assert device.copy_to_host().sum() == 136
    copied = np.from_dlpack(host, copy=True)
    copied[0] = -1
    assert array[0] == 4, "a copy of its own"
    del host, device
    gc.collect()
    assert array.sum() == 136, "kept alive"


def numpy_gives(session):
    source = np.arange(24, dtype=np.float32).reshape(4, 6)
    for versioned in (True, False):
        taken = quern_interop.from_dlpack(source[::2, ::-1], versioned=versioned)
        assert taken.sum() == source[::2].sum()
        source[0, 0] += 1000
        assert taken.sum() == source[::2].sum(), "the same memory"
        back = np.from_dlpack(session.to_device(taken).copy_to_host())
        assert (back == source[::2, ::-1]).all()
    locked = source[1:]
    locked.flags.writeable = False
    taken = quern_interop.from_dlpack(locked)
    assert taken.read_only
    assert not np.from_dlpack(taken).flags.writeable
    refused(lambda: quern_interop.from_dlpack(np.zeros(3, dtype=np.longdouble)), "long", "128", "supported")
    refused(lambda: taken.__dlpack__(), "before 1.0")


def every_type(session):
    names = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
    for name in names:
        source = np.array([[0, 1, 2], [3, 4, 100]]).astype(name)
        taken = quern_interop.from_dlpack(source)
        assert taken.dtype == name, (taken.dtype, name)
        back = np.from_dlpack(session.to_device(taken).copy_to_host())
        assert back.dtype == source.dtype and (back == source).all()


def check(session):
    numpy_takes(session)
    numpy_gives(session)
    every_type(session)
    return f"numpy {np.__version__} takes and gives arrays by DLPack"
