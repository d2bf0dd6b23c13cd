// SPDX-License-Identifier: Apache-2.0
// The component's interface: Kernel Python -> CUDA C++.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "abi/kernel_request.hpp"
#include "quern/expected.hpp"

namespace quern::frontend {

/// The input of NVRTC for one specialisation.
struct CudaSource {
  std::string text;
  std::string entry;                 ///< the kernel's name in it
  std::vector<std::string> options;  ///< that the kernel's decorator asks for
  Diagnostics log;                   ///< warnings
};

/// A kernel of a file, before it is specialised.
struct KernelOutline {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<std::string> signatures;  ///< that its decorator gives: "float32, array(float32, 1d, A)"
};

/// CUDA C++ for kernel `entry` of the file (the only one, if it is empty) with arguments of these types:
/// Numba's syntax, "float32, float32[::1]"; empty if its decorator gives them. `constants` are bound to
/// names of the file's level, new ones or in place of the file's own.
Expected<CudaSource> translate(const abi::KernelSource& source, const std::string& entry,
                               const std::string& signature, std::span<const abi::Constant> constants = {});

/// The kernels of a file, in its order. Fails if the file is not valid Python.
Expected<std::vector<KernelOutline>> outline(const abi::KernelSource& source,
                                             std::span<const abi::Constant> constants = {});

}  // namespace quern::frontend
