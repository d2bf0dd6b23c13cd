// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <string_view>
#include <variant>
#include <vector>

#include "cpu/compiler.hpp"
#include "ptx/module.hpp"
#include "quern/diagnostic.hpp"

namespace quern::cpu::device {

/// PTX that runs here.
struct LoadablePtx {
  ptx::Module module;
  std::vector<KernelInfo> kernels;
};

/// The reason why an image does not load. Results: CUDA_ERROR_NO_BINARY_FOR_GPU (machine code, or PTX for a
/// newer architecture), CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_INVALID_PTX (everything else,
/// including instructions that this device does not support: the diagnostics distinguish them by their code).
struct Refusal {
  CUresult result = CUDA_ERROR_INVALID_PTX;
  Diagnostics diagnostics;
};

/// Parses, verifies and inspects PTX text.
std::variant<LoadablePtx, Refusal> read_ptx(std::string_view text);

/// The text of a module image: a NUL-terminated PTX text. A Refusal for machine code, which is not
/// terminated.
std::variant<std::string_view, Refusal> text_of_image(const void* image);

}  // namespace quern::cpu::device
