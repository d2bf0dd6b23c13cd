# SPDX-License-Identifier: Apache-2.0
"""Prices of European options by the formula of Black and Scholes in float32, one option a thread; black_scholes.cu is the same in CUDA C++."""
import math
from numba import cuda, float32

ONE = float32(1)
HALF = float32(0.5)


@cuda.jit(device=True)
def normal_cdf(x):
    """M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions", 26.2.17: its error is below 7.5e-8."""
    k = ONE / (ONE + float32(0.2316419) * abs(x))
    inner = float32(1.781477937) + k * (float32(-1.821255978) + k * float32(1.330274429))
    polynomial = k * (float32(0.31938153) + k * (float32(-0.356563782) + k * inner))
    tail = float32(0.39894228040143267794) * math.exp(-HALF * x * x) * polynomial
    return ONE - tail if x > float32(0) else tail


@cuda.jit
def black_scholes(spot, strike, years, rate, volatility, call, put):
    i = cuda.grid(1)
    if i >= spot.size:
        return
    root = volatility * math.sqrt(years[i])
    d1 = (math.log(spot[i] / strike[i]) + (rate + HALF * volatility * volatility) * years[i]) / root
    d2 = d1 - root
    discounted = strike[i] * math.exp(-rate * years[i])
    price = spot[i] * normal_cdf(d1) - discounted * normal_cdf(d2)
    call[i] = price
    put[i] = price - spot[i] + discounted  # put-call parity
