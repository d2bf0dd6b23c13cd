#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python_values.txt: expressions of Kernel Python with their values in CPython and NumPy.

  tests/unit/session/modules/python_values.py > tests/unit/session/python_values.txt
"""
import cmath
import math
import operator

import numpy as np

x, y, n, m, z, w = 0.7, -2.5, 12, -5, complex(0.3, -1.2), complex(-2.0, 0.5)
REAL = ["sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
        "tanh", "asinh", "atanh", "erf", "erfc", "lgamma", "gamma", "fabs", "floor", "ceil", "trunc", "cbrt", "degrees", "radians", "ulp"]
COMPLEX = ["sqrt", "exp", "log", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]
EXPRESSIONS = [f"math.{name}(x)" for name in REAL]
EXPRESSIONS += [f"cmath.{name}({number}).{part}" for name in COMPLEX for number in ("z", "w", "-z") for part in ("real", "imag")]
EXPRESSIONS += [
    "cmath.phase(z)", "cmath.polar(w)[0]", "cmath.polar(w)[1]", "cmath.rect(x, y).imag", "cmath.isnan(z)", "cmath.isfinite(w)", "abs(z)",
    "(z ** w).real", "(z / w).imag", "(z * w - z).real", "(-z + 2).imag", "np.conj(z).imag",
    "z.conjugate().imag", "(z * w).conjugate().imag", "x.conjugate()", "(n, 2, m, 4)[::-2][1]", "np.angle(w)", "np.real(w)", "np.imag(w)",
    "math.log(n, 3)", "math.hypot(x, y)", "math.atan2(y, x)", "math.fmod(y, x)", "math.copysign(x, y)", "math.remainder(y, x)",
    "math.nextafter(x, y)", "math.ldexp(x, 5)", "math.frexp(y)[0]", "math.frexp(y)[1]", "math.modf(y)[0]", "math.modf(y)[1]",
    "math.gcd(n, 18)", "math.gcd(m, 0)", "math.lcm(n, m)", "math.lcm(n, 0)", "math.isqrt(n)", "math.isqrt(n * n * 100000000)",
    "math.factorial(n)", "math.comb(n, 5)", "math.comb(60, 30)", "math.comb(n, 13)", "math.perm(n, 4)", "math.isclose(x, x + 1e-12)",
    "math.isclose(x, y)", "math.isclose(1e-12, 0, abs_tol=1e-9)", "math.isclose(x, x * 1.01, rel_tol=0.1)", "math.prod((x, y, 2))",
    "math.prod((n, m))", "math.fsum((1e16, 1, -1e16, x, 1e-3))", "math.fsum((.1, .1, .1, .1, .1, .1, .1, .1, .1, .1))",
    "math.dist((x, 1), (3, y))", "math.sumprod((n, 2), (m, 3))",
    "np.add(n, m)", "np.subtract(x, y)", "np.multiply(n, m)", "np.divide(n, m)", "np.floor_divide(n, m)", "np.mod(n, m)",
    "np.bitwise_and(n, 6)", "np.bitwise_xor(n, 6)", "np.left_shift(n, 3)", "np.less(x, y)", "np.greater_equal(x, y)", "np.negative(x)",
    "np.invert(n)", "np.logical_and(x, y)", "np.logical_xor(x, y)", "np.logical_not(x)", "np.where(x > y, n, m)", "np.clip(n, 1, 7)",
    "np.clip(y, -1.5, 7)", "np.maximum(x, y)", "np.minimum(n, m)", "np.reciprocal(x)", "np.sinc(x)", "np.spacing(y)", "np.nextafter(x, 9.0)",
    "np.heaviside(y, 0.5)", "np.heaviside(0.0, 0.5)", "np.logaddexp(x, y)", "np.logaddexp2(y, x)", "np.float_power(n, x)", "np.signbit(y)",
    "np.rint(y)", "np.round(x)", "np.gcd(n, 18)", "np.isclose(x, x + 1e-9)", "np.sign(y)", "np.square(y)", "np.cbrt(y)", "np.deg2rad(x)",
    "operator.add(x, n)", "operator.truediv(n, m)", "operator.floordiv(n, m)", "operator.mod(n, m)", "operator.pow(x, n)", "operator.rshift(m, 1)",
    "operator.and_(n, 6)", "operator.lt(m, n)", "operator.ne(x, y)", "operator.neg(x)", "operator.inv(n)", "operator.not_(x)", "operator.abs(m)",
    "operator.truth(n)", "float('inf')", "-float('Infinity')", "float('nan')", "float('-1.5e3') + x", "(x > y) is True", "(x > y) is not True",
    "divmod(n, m)[0]", "divmod(n, m)[1]", "n // m", "n % m", "y // x", "m >> 1", "n ** 3", "x ** m", "round(y)", "round(x * 10, 1)", "round(x * 1e300, 1)", "round(y, 25)", "int(y)",
    "n if x > y else m", "x and y", "0 or y", "not x", "m < n < 20 < 30", "n in (1, 12)", "(n, m)[-1]", "-m", "~n", "abs(m)", "min(n, m, 3)",
    "max(x, y)", "bool(n)", "float(n)", "complex(x, y).imag", "np.iinfo(np.int16).max", "np.finfo(np.float32).eps", "np.finfo(np.float64).max",
]


def sumprod(a, b):
    return sum(p * q for p, q in zip(a, b))


if not hasattr(math, "sumprod"):
    math.sumprod = sumprod
for expression in EXPRESSIONS:
    if "math.exp2" in expression and not hasattr(math, "exp2"):
        continue
    print(f"{expression}\t{float(eval(expression)).hex()}")
