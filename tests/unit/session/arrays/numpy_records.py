#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes numpy_records.hpp: .npy files of records and of 16-bit floats, as NumPy and ml_dtypes write them."""
import io
import pathlib

import ml_dtypes
import numpy as np

INNER = np.dtype([("x", "f4"), ("y", "f4")], align=True)
CELL = np.dtype([("kind", "i1"), ("place", INNER), ("corners", INNER, (2,)), ("grid", "i2", (2, 3)), ("mass", "f8")], align=True)
SPARSE = np.dtype({"names": ["b", "a"], "formats": ["i4", INNER], "offsets": [2, 9], "itemsize": 20})
PART = np.dtype([("v", "i4", (2,)), ("w", INNER)])
DEEP = np.dtype([("cells", PART, (2,)), ("t", "u2")])
MIXED = np.dtype([("h", "f2"), ("b", ml_dtypes.bfloat16)])


def aligned():
    cells = np.zeros(3, CELL)
    for i in range(3):
        cells[i]["kind"] = 10 + i
        cells[i]["place"] = (i, i + 0.5)
        cells[i]["corners"]["x"] = [10 * i, 10 * i + 1]
        cells[i]["corners"]["y"] = [10 * i + 0.5, 10 * i + 1.5]
        cells[i]["grid"] = np.arange(6).reshape(2, 3) + 100 * i
        cells[i]["mass"] = -i
    return cells


def sparse():
    array = np.zeros(2, SPARSE)
    array["b"] = [6, -7]
    array["a"]["x"], array["a"]["y"] = [3, 5], [4, 6]
    return array


def deep():
    array = np.zeros(1, DEEP)
    array["cells"]["v"] = [[[1, 2], [3, 4]]]
    array["cells"]["w"]["x"] = [[7, 8]]
    array["t"] = 65535
    return array


def mixed():
    array = np.zeros(2, MIXED)
    array["h"], array["b"] = 1, 1
    return array


FILES = {
    "Aligned": ("nested records with padding", aligned()),
    "Sparse": ("offsets of their own", sparse()),
    "Deep": ("nested twice", deep()),
    "Titled": ("a title", np.array([(5,)], dtype=[(("the title", "n"), "i4")])),
    "Half": ("float16", np.array([1, -2.5, 0.1, 65504, np.inf], np.float16)),
    "Bfloat": ("bfloat16", np.array([1, -2.5, 0.1, 3e38, np.inf], ml_dtypes.bfloat16)),
    "Mixed": ("both in a record", mixed()),
    "TwoBytes": ("two bytes", np.zeros(2, "V2")),
}


def c_string(data):
    lines = ["".join(f"\\{b:03o}" for b in data[i:i + 32]) for i in range(0, len(data), 32)]
    return "\n    ".join(f'"{line}"' for line in lines)


def main():
    out = ["// SPDX-License-Identifier: Apache-2.0",
           f"// Written by numpy_records.py with NumPy {np.__version__} and ml_dtypes {ml_dtypes.__version__}.", "#pragma once", "",
           "#include <cstddef>", "", "struct NumpyRecords {", "  const char* what;", "  const char* bytes;", "  std::size_t size;", "};", ""]
    for name, (what, array) in FILES.items():
        file = io.BytesIO()
        np.save(file, array)
        data = file.getvalue()
        out += [f'inline const NumpyRecords k{name} = {{\n    "{what}",\n    {c_string(data)},\n    {len(data)}}};']
    pathlib.Path(__file__).with_name("numpy_records.hpp").write_text("\n".join(out) + "\n")


main()
