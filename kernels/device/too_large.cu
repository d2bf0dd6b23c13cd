// SPDX-License-Identifier: Apache-2.0
// Constant memory holds 64 KiB: this array is one element larger, and refused by name.
#include <quern/device.cuh>

constexpr int kTable[16385] = {};

extern "C" __global__ void first(int* out) { *out = quern::constant::array_like<kTable>()[0]; }
