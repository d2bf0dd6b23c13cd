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

/// Facts about a kernel that do not depend on the block shape; the source of cuFuncGetAttribute.
struct KernelInfo {
  std::string name;
  std::vector<ir::Parameter> params;
  std::uint64_t param_bytes = 0;
  std::uint64_t static_shared_bytes = 0;
  std::uint64_t local_bytes = 0;  ///< the kernel's own, of a thread
  std::uint64_t const_bytes = 0;
  std::uint32_t max_threads = 1024;  ///< 1024 or .maxntid/.reqntid's product
  std::uint32_t register_count = 0;  ///< an estimate from live values, 16..255
};

/// The kernels of a module as docs/decisions/0025-shared-machine-code.md lays them out, and back. Reading
/// accepts any bytes; errors (code "code-image"): bytes that are no such list, or that no kernel can be like.
std::string write_kernels(const std::vector<KernelInfo>& kernels);
Expected<std::vector<KernelInfo>> read_kernels(std::string_view bytes);

}  // namespace quern::cpu
