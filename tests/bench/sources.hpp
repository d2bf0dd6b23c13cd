// SPDX-License-Identifier: Apache-2.0
// CUDA C++ of small kernels, which several benchmarks compile.
#pragma once

#include <fmt/format.h>

#include <string>

namespace quern::bench {

/// A kernel k(y) that replaces each element x of `type` by `expression`.
inline std::string elementwise(const char* type, const char* expression) {
  return fmt::format(
      "extern \"C\" __global__ void k({0}* y) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {0} x = "
      "y[i]; y[i] = {1}; }}\n",
      type, expression);
}

/// A kernel k(y) of fifty lines: arithmetic, a branch and a loop, as small kernels have them.
inline std::string fifty_lines() {
  std::string text =
      "extern \"C\" __global__ void k(float* y) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  float x = y[i];\n  float v0 = x, v1 = x + 1.0f;\n  int n = 0;\n";
  for (int line = 2; line < 38; ++line)
    text += fmt::format("  float v{} = v{} * {}.25f + v{};\n", line, line - 1, line, line - 2);
  return text +
         "  if (v37 > 1.0f) {\n    v37 = v37 - v36;\n  } else {\n    v37 = v37 / 3.0f;\n  }\n"
         "  for (int k = 0; k < (i & 7); ++k) {\n    n += k * i;\n  }\n  y[i] = v37 + n;\n}\n";
}

}  // namespace quern::bench
