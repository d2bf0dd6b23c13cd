// SPDX-License-Identifier: Apache-2.0
// component: session
// All of quern's host API. A first program:
//
//   quern::Session session;
//   auto module = session.load_cuda(R"(extern "C" __global__ void twice(int n, float* x) {
//     int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; })");
//   auto x = session.to_device(std::vector<float>(1000, 1.0f));
//   module.kernel("twice")({.grid = 4, .block = 256})(1000, x);
//   std::vector<float> result = x.copy_to_host();
#pragma once

#include "quern/allocator.hpp"
#include "quern/argument.hpp"
#include "quern/array_view.hpp"
#include "quern/attempt.hpp"
#include "quern/bundle.hpp"
#include "quern/compile_cache.hpp"
#include "quern/compile_source.hpp"
#include "quern/compile_stats.hpp"
#include "quern/constant.hpp"
#include "quern/cuda_array_interface.hpp"
#include "quern/device.hpp"
#include "quern/device_array.hpp"
#include "quern/diagnostic.hpp"
#include "quern/disk_cache.hpp"
#include "quern/dlpack.hpp"
#include "quern/dlpack_tensor.hpp"
#include "quern/doctor.hpp"
#include "quern/driver_error.hpp"
#include "quern/dtype.hpp"
#include "quern/element_type.hpp"
#include "quern/error.hpp"
#include "quern/expected.hpp"
#include "quern/file.hpp"
#include "quern/global.hpp"
#include "quern/half.hpp"
#include "quern/host_memory.hpp"
#include "quern/kernel.hpp"
#include "quern/launch_config.hpp"
#include "quern/layout.hpp"
#include "quern/log.hpp"
#include "quern/memory_stats.hpp"
#include "quern/module.hpp"
#include "quern/native.hpp"
#include "quern/ndarray.hpp"
#include "quern/pending.hpp"
#include "quern/printf.hpp"
#include "quern/progress.hpp"
#include "quern/random.hpp"
#include "quern/record.hpp"
#include "quern/roc.hpp"
#include "quern/service.hpp"
#include "quern/session.hpp"
#include "quern/smart_array.hpp"
#include "quern/stage.hpp"
#include "quern/stream.hpp"
#include "quern/strided_array.hpp"
#include "quern/where.hpp"
