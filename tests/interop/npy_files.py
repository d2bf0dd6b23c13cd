# SPDX-License-Identifier: Apache-2.0
"""Records, nested ones, padding, and 16-bit floats through .npy files: NumPy and ml_dtypes on the other side."""
import os
import tempfile

import ml_dtypes
import numpy as np
import quern_interop

INNER = np.dtype([("x", "f4"), ("y", "f4")], align=True)
PART = np.dtype([("v", "i4", (2,)), ("w", INNER)])
DTYPES = [
    INNER,
    np.dtype([("kind", "i1"), ("place", INNER), ("corners", INNER, (2,)), ("grid", "i2", (2, 3)), ("mass", "f8")], align=True),
    np.dtype([("kind", "i1"), ("mass", "f8")]),
    np.dtype({"names": ["b", "a"], "formats": ["i4", INNER], "offsets": [2, 9], "itemsize": 20}),
    np.dtype([("cells", PART, (2, 2)), ("t", "u2")]),
    np.dtype([("flag", "?"), ("z", "c8"), ("h", "f2"), ("text", "S5")]),
    np.dtype("f2"),
    np.dtype("c16"),
    np.dtype("V2"),
]


def same(a, b):
    """The values of every field; padding may hold anything."""
    if a.dtype.names is None:
        return a.shape == b.shape and a.tobytes() == b.tobytes()
    return all(same(np.ascontiguousarray(a[name]), np.ascontiguousarray(b[name])) for name in a.dtype.names)


def random_records(dtype, shape):
    random = np.random.default_rng(7)
    array = np.zeros(shape, dtype)
    raw = array.view(np.uint8).reshape(-1)
    raw[:] = random.integers(0, 2, raw.size)  # any bits are a value of every type, and True and False of bool
    return array


def both_ways(path, array):
    np.save(path, array)
    taken = quern_interop.load_npy(path)
    assert same(np.frombuffer(taken.bytes(), array.dtype).reshape(array.shape), array), array.dtype
    os.unlink(path)
    taken.save_npy(path)
    back = np.load(path)
    assert back.shape == array.shape and back.flags.f_contiguous == array.flags.f_contiguous
    assert same(back, array), array.dtype
    return taken, back


def bfloat16(path):
    array = np.array([1, -2.5, 0.1, 3e38, np.inf], ml_dtypes.bfloat16)
    taken, back = both_ways(path, array)
    assert taken.dtype == "bfloat16", taken.dtype
    assert (back.view(ml_dtypes.bfloat16) == array).all()
    mixed = np.zeros(3, [("b", ml_dtypes.bfloat16), ("h", "f2", (2,))])
    mixed["b"], mixed["h"] = 1.5, 2.5
    taken, back = both_ways(path, mixed)
    assert taken.field("b").dtype == "bfloat16"
    assert (back["b"].view(ml_dtypes.bfloat16) == 1.5).all() and (back["h"] == 2.5).all()


def check(session):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "array.npy")
        for dtype in DTYPES:
            for shape in ((3,), (2, 2), ()):
                both_ways(path, random_records(dtype, shape) if shape else random_records(dtype, (1,)).reshape(()))
        both_ways(path, np.asfortranarray(random_records(DTYPES[1], (2, 3))))
        bfloat16(path)
    return f"numpy {np.__version__} and ml_dtypes {ml_dtypes.__version__} share .npy files of records and 16-bit floats"
