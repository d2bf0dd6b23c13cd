# SPDX-License-Identifier: Apache-2.0
"""The kernels of tests/gpu/compare.toml on any CUDA driver: their data, their runs, and how results are compared."""
import ctypes
import hashlib
import json
import math
import random
import struct

FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d", "u8": "<B", "i32": "<i", "i64": "<q"}
SCALARS = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "f32": ctypes.c_float, "f64": ctypes.c_double}
MANTISSA = {"f16": 10, "f32": 23, "f64": 52}


def values(argument, seed):
    """The bytes of an array argument."""
    form, count, fill = FORMATS[argument["array"]], argument["count"], argument["fill"]
    r = random.Random(seed)
    size = struct.calcsize(form)
    if fill == "zeros":
        return bytes(size * count)
    if fill == "bits":
        return r.randbytes(size * count)
    makers = {"units": lambda: r.uniform(-1, 1), "prices": lambda: r.uniform(5, 50), "years": lambda: r.uniform(0.25, 10),
              "reals": lambda: math.ldexp(r.uniform(-2, 2), r.randint(-60, 60))}
    return b"".join(struct.pack(form, makers[fill]()) for _ in range(count))


def read_cases(folder):
    return json.loads((folder / "cases.json").read_text())


def digest(case, ptx):
    """What a recorded result belongs to: the PTX, the launch and the data."""
    return hashlib.sha256(json.dumps([ptx, case["grid"], case["block"], case["args"]], sort_keys=True).encode()).hexdigest()


def run(driver, case, ptx):
    """The bytes of each array argument after one launch."""
    module = driver.load(ptx)
    pointers, arguments = [], []
    for number, argument in enumerate(case["args"]):
        if "array" in argument:
            pointers.append((driver.upload(values(argument, number + 1)), argument))
            arguments.append(ctypes.c_uint64(pointers[-1][0]))
        else:
            (kind, value), = argument.items()
            arguments.append(SCALARS[kind](value))
    module.function(case["entry"]).launch(case["grid"], case["block"], arguments)
    driver.synchronize()
    results = [driver.download(pointer, struct.calcsize(FORMATS[argument["array"]]) * argument["count"]) for pointer, argument in pointers]
    for pointer, _ in pointers:
        driver.free(pointer)
    module.unload()
    return results


def distance(kind, a, b, floor):
    """Of two floats: units in the last place between them; of numbers below `floor`, in those of `floor`."""
    if a == b or math.isnan(a) and math.isnan(b):
        return 0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    exponent = math.frexp(max(abs(a), abs(b), floor))[1] - 1
    return abs(a - b) / math.ldexp(1, exponent - MANTISSA[kind])


def compare(case, expected, got):
    """(greatest distance in ULP, how many elements differ by more than the case allows)."""
    worst, wrong = 0.0, 0
    arrays = [argument for argument in case["args"] if "array" in argument]
    for argument, one, other in zip(arrays, expected, got):
        if one == other:
            continue
        kind = argument["array"]
        for a, b in zip(struct.iter_unpack(FORMATS[kind], one), struct.iter_unpack(FORMATS[kind], other)):
            off = distance(kind, a[0], b[0], case.get("floor", 0.0)) if kind[0] == "f" else math.inf * (a != b) if a != b else 0
            worst = max(worst, off)
            wrong += off > case.get("ulp", 0)
    return worst, wrong
