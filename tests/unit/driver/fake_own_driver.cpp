// SPDX-License-Identifier: Apache-2.0
// Looks like the stand-alone libcuda.so.1 of the CPU device: a driver that also exports quern_cpu_device. As
// a plug-in, it has a version that does not exist.
#pragma GCC visibility push(default)
#include <cuda.h>

#include "driver/cpu_plugin.h"

extern "C" {
CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
const QuernCpuPlugin* quern_cpu_device(void) {
  static const QuernCpuPlugin plugin{};
  return &plugin;
}
}
