# SPDX-License-Identifier: Apache-2.0
"""What consumers from PyPI make of quern's arrays, and quern of theirs. Run by tools/check_interop."""
import gc

import numpy as np
import quern_interop

session = quern_interop.Session("cpu")

# NumPy takes quern's memory by DLPack, without copying, and keeps it alive.
host, device = session.mapped(10, 3.0)
array = np.from_dlpack(host)
assert array.shape == (10,) and array.dtype == np.float32 and (array == 3).all()
device.add(1.0)
assert (array == 4).all(), "the same memory"
array[5] = 100
assert device.copy_to_host().sum() == 136
del host, device
gc.collect()
assert array.sum() == 136, "kept alive"

# quern takes NumPy's memory, strides included.
source = np.arange(24, dtype=np.float32).reshape(4, 6)
taken = quern_interop.from_dlpack(source[::2, ::-1])
assert taken.sum() == source[::2].sum()
source[0, 0] += 1000
assert taken.sum() == source[::2].sum()
back = np.from_dlpack(session.to_device(taken).copy_to_host())
assert (back == source[::2, ::-1]).all()
try:
    quern_interop.from_dlpack(np.zeros(3, dtype=np.longdouble))
    raise SystemExit("a long double was taken")
except Exception as error:
    assert "long" in str(error) or "128" in str(error) or "supported" in str(error), error
print("numpy", np.__version__, "takes and gives arrays by DLPack")

try:
    from numba import cuda
except ImportError:
    raise SystemExit("numba-cuda is not there")

# numba-cuda on the same device: its views of quern's arrays, and quern's of its.
device = session.to_device(quern_interop.from_dlpack(np.arange(10, dtype=np.float32)))
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
import importlib.metadata

print("numba-cuda", importlib.metadata.version("numba-cuda"), "shares device arrays by the CUDA Array Interface")
