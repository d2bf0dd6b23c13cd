#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the result type of every binary operator and pair of types in Numba's CUDA target; the output is numba_types.txt.

Needs numba and numba-cuda (no GPU): numba_types.py > numba_types.txt
"""
import itertools
import operator

import numba_cuda
from numba.core import types
from numba.cuda.descriptor import cuda_target
from numba.cuda.types import bfloat16

NAMES = "b1 i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 c64 c128 bf16".split()
TYPES = [types.boolean, types.int8, types.int16, types.int32, types.int64, types.uint8, types.uint16, types.uint32, types.uint64,
         types.float16, types.float32, types.float64, types.complex64, types.complex128, bfloat16]
NAME = {str(t): n for t, n in zip(TYPES, NAMES)}
OPERATORS = "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor lt eq".split()

context = cuda_target.typing_context
context.refresh()
print(f"# written by numba_types.py with numba-cuda {numba_cuda.__version__}: operator, left, right, result (- where it is refused)")
for name in OPERATORS:
    for a, b in itertools.product(TYPES, TYPES):
        try:
            result = NAME[str(context.resolve_function_type(getattr(operator, name), (a, b), {}).return_type)]
        except Exception:
            result = "-"
        print(name, NAME[str(a)], NAME[str(b)], result)
for a, b in itertools.product(TYPES, TYPES):
    try:
        print("unify", NAME[str(a)], NAME[str(b)], NAME[str(context.unify_types(a, b))])
    except Exception:  # bfloat16 with another type: quern takes the wider
        pass
