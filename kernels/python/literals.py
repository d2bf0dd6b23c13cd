# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on literals is Python's, with whole numbers of any length; the device sees what comes out of it."""
from numba import cuda


@cuda.jit
def folded(reals, ints, unsigned):
    reals[0] = 10**-2
    reals[1] = 2**64 - 1
    reals[2] = 7 // -2 * 2.5 + -7 % 3.5
    reals[3] = ((-8) ** (1 / 3)).real
    reals[4] = (1 + 2j).imag - (3 - 1j).real
    reals[5] = 2**-1 + True / 4
    reals[6] = 100000000000000000000000 // 10**22 / 3
    reals[7] = -7.5 // 2
    ints[0] = (2**64 - 1) >> 60
    ints[1] = 1 << 70 >> 68
    ints[2] = -9223372036854775808
    ints[3] = 2**63 % 10
    ints[4] = ~(1 << 64) >> 3 ^ -5
    ints[5] = -(1 << 70) // (1 << 65) - (-7 // 2) % 3
    ints[6] = (1 << 100 | 3) & ~(1 << 100)
    unsigned[0] = 2**63
    unsigned[1] = 0xFFFF_FFFF_FFFF_FFFF - 3
    unsigned[2] = 0x1_0000_0000_0000_0000 >> 1
