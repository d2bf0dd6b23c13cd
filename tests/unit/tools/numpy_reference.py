#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes numpy_reference.hpp: the value of each argument expression in NumPy, and files that NumPy wrote."""
import io
import pathlib
import numpy as np

EXPRESSIONS = [
    ("zeros((2,3), int16)", lambda: np.zeros((2, 3), np.int16)),
    ("ones(3)", lambda: np.ones(3)),
    ("full((2,2), 7, int32)", lambda: np.full((2, 2), 7, np.int32)),
    ("full((2,), -1.5, float16)", lambda: np.full((2,), -1.5, np.float16)),
    ("full(shape=(2,), fill_value=3)", lambda: np.full((2,), 3)),
    ("arange(5)", lambda: np.arange(5)),
    ("arange(2, 9, 3, uint8)", lambda: np.arange(2, 9, 3, np.uint8)),
    ("arange(10, 0, -4)", lambda: np.arange(10, 0, -4)),
    ("arange(0, 1, 0.1)", lambda: np.arange(0, 1, 0.1)),
    ("arange(0, 1, 0.1, float32)", lambda: np.arange(0, 1, 0.1, np.float32)),
    ("arange(0, 10, 1, float32)", lambda: np.arange(0, 10, 1, np.float32)),
    ("arange(3, dtype=complex64)", lambda: np.arange(3, dtype=np.complex64)),
    ("linspace(0, 1, 7)", lambda: np.linspace(0, 1, 7)),
    ("linspace(-2, 3, 5, float32)", lambda: np.linspace(-2, 3, 5, dtype=np.float32)),
    ("linspace(0, 10, 4, int32)", lambda: np.linspace(0, 10, 4, dtype=np.int32)),
    ("random((2,3), float32, seed=1)", lambda: np.random.default_rng(1).random((2, 3), np.float32)),
    ("random((5,), float64, seed=42)", lambda: np.random.default_rng(42).random((5,))),
    ("random(3, seed=81985529216486895)", lambda: np.random.default_rng(81985529216486895).random(3)),
    ("zeros((0,4), bool)", lambda: np.zeros((0, 4), bool)),
]

BASE = np.arange(24, dtype=np.float32).reshape(4, 6)
RECORD = np.dtype({"names": ["a", "b", "c"], "formats": ["i1", "f8", ("i2", (3,))], "offsets": [0, 8, 16], "itemsize": 24})
RECORDS = np.zeros(2, RECORD)
RECORDS["a"] = [1, 2]
RECORDS["b"] = [1.5, -2.5]
RECORDS["c"] = [[1, 2, 3], [4, 5, 6]]

FILES = [
    ("C order", BASE, "", BASE),
    ("Fortran order", np.asfortranarray(BASE), "", BASE),
    ("big-endian", BASE.astype(">f4"), "", BASE),
    ("transposed", BASE, ".T", BASE.T),
    ("sliced", BASE, "[::2, 1:]", BASE[::2, 1:]),
    ("reversed", BASE, "[::-1, -2:0:-2]", BASE[::-1, -2:0:-2]),
    ("one row", BASE, "[-1]", BASE[-1]),
    ("ellipsis", BASE, "[..., 2]", BASE[..., 2]),
    ("sliced, then transposed", BASE, "[1:3].T", BASE[1:3].T),
    ("records with padding and a subarray", RECORDS, "", RECORDS),
    ("complex", np.array([1 + 2j, -3.5j]), "", np.array([1 + 2j, -3.5j])),
    ("bool scalar", np.array(True), "", np.array(True)),
    ("empty", np.zeros((3, 0), np.int8), "", np.zeros((3, 0), np.int8)),
]


def shape(array):
    return "{" + ", ".join(str(n) for n in array.shape) + "}"


def c_string(data):
    lines = ["".join(f"\\{b:03o}" for b in data[i:i + 32]) for i in range(0, len(data), 32)]
    return "\n     ".join(f'"{line}"' for line in lines)


def main():
    out = ["// SPDX-License-Identifier: Apache-2.0", f"// Written by numpy_reference.py with NumPy {np.__version__}.", "#pragma once", "",
           "#include <cstddef>", "#include <cstdint>", "#include <vector>", "",
           "struct NumpyRow {", "  const char* argument;", "  const char* descr;", "  std::vector<std::int64_t> shape;", "  const char* hex;", "};",
           "struct NumpyFile {", "  const char* what;", "  const char* bytes;", "  std::size_t size;", "  const char* suffix;",
           "  std::vector<std::int64_t> shape;", "  const char* hex;", "};", "", "inline const NumpyRow kNumpyRows[] = {"]
    for text, make in EXPRESSIONS:
        array = make()
        out.append(f'    {{"{text}", "{array.dtype.str}", {shape(array)}, "{array.tobytes().hex()}"}},')
    out += ["};", "", "inline const NumpyFile kNumpyFiles[] = {"]
    for what, stored, suffix, seen in FILES:
        file = io.BytesIO()
        np.save(file, stored)
        data = file.getvalue()
        native = np.ascontiguousarray(seen) if seen.ndim else seen
        out.append(f'    {{"{what}",\n     {c_string(data)},\n     {len(data)}, "{suffix}", {shape(seen)}, "{native.tobytes().hex()}"}},')
    out += ["};", ""]
    pathlib.Path(__file__).with_name("numpy_reference.hpp").write_text("\n".join(out))


main()
