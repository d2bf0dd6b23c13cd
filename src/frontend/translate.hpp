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
  std::string entry;                 ///< name of the kernel in the source
  std::vector<std::string> options;  ///< options that the kernel's decorator requires
  Diagnostics log;                   ///< warnings
};

/// A kernel of a file, before it is specialised.
struct KernelOutline {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<std::string> signatures;  ///< signatures from its decorator: "float32, array(float32, 1d, A)"
};

/// Translates kernel `entry` of the file (the only kernel, if it is empty) to CUDA C++ for arguments of these
/// types, in Numba's syntax, "float32, float32[::1]"; empty if its decorator gives them. `constants` are
/// bound to names of the file's level, as new names or in place of the file's own values.
Expected<CudaSource> translate(const abi::KernelSource& source, const std::string& entry,
                               const std::string& signature, std::span<const abi::Constant> constants = {});

/// Returns the kernels of a file, in the order of the file. Fails if the file is not valid Python.
Expected<std::vector<KernelOutline>> outline(const abi::KernelSource& source,
                                             std::span<const abi::Constant> constants = {});

}  // namespace quern::frontend
