// SPDX-License-Identifier: Apache-2.0
// Facts about the kernels of a module, and their stored form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/abi/facts.hpp"
#include "quern/expected.hpp"

namespace quern::cpu {

/// Facts about a kernel that do not depend on the block shape. cuFuncGetAttribute returns these.
struct KernelInfo {
  std::string name;
  std::vector<ir::Parameter> params;
  std::uint64_t param_bytes = 0;
  std::uint64_t static_shared_bytes = 0;
  std::uint64_t local_bytes = 0;  ///< local memory of a thread for the kernel itself
  std::uint64_t const_bytes = 0;
  std::uint32_t max_threads = 1024;  ///< .maxntid or the product of .reqntid, otherwise 1024
  std::uint32_t register_count = 0;  ///< an estimate from live values, 16..255
};

/// Write and read the kernels of a module in the format of docs/decisions/0025-shared-machine-code.md.
/// Reading accepts any bytes. Errors (code "code-image"): the bytes are not such a list, or contain values
/// that no kernel can have.
std::string write_kernels(const std::vector<KernelInfo>& kernels);
Expected<std::vector<KernelInfo>> read_kernels(std::string_view bytes);

}  // namespace quern::cpu
