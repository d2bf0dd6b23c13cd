// SPDX-License-Identifier: Apache-2.0
// component: session
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "quern/diagnostic.hpp"
#include "quern/expected.hpp"
#include "quern/export.hpp"
#include "quern/kernel.hpp"
#include "quern/module.hpp"
#include "quern/progress.hpp"

namespace quern {

/// A compilation without a device.
struct CompileRequest {
  std::string source = {};
  SourceLanguage language = SourceLanguage::cuda;
  /// `load.file_name` is the source's name in messages and in the PTX's line information.
  LoadOptions load = {};
  /// For Kernel Python: the kernel to compile, and its argument types, "float32, float32[::1]". The name may
  /// be empty if there is one kernel, the types if its decorator has them.
  std::string kernel = {};
  std::string signature = {};
  /// The virtual architecture of the PTX: 89 is compute_89.
  std::uint32_t compute_capability = 89;
  /// A GPU's architecture, for its machine code beside the PTX: 90 is sm_90. Nothing: PTX only.
  std::optional<std::uint32_t> machine = {};
  /// The CUDA version of the driver that is to load the PTX, 12040 is CUDA 12.4; 0: any.
  std::uint32_t driver_version = 0;
  /// Receives the progress of translating and compiling, and may cancel them.
  ProgressHandler progress = {};
};

/// A kernel of compiled source; sizes in bytes.
struct CompiledKernel {
  std::string name;          ///< the author's: "saxpy", "scale<float>"
  std::string lowered_name;  ///< in the PTX
  std::vector<Parameter> parameters;
  std::uint64_t static_shared_bytes = 0;
  std::uint32_t max_threads = 0;  ///< a block, from the source's launch bounds; 0: no bound
};

/// A variable of compiled source.
struct CompiledVariable {
  std::string name;
  std::string lowered_name;
};

struct CompiledSource {
  std::string ptx;
  std::vector<std::byte> machine_code;  ///< a cubin; empty unless it was asked for and could be made
  std::vector<CompiledKernel> kernels;
  std::vector<CompiledVariable> variables;
  std::string cuda_source;  ///< of Kernel Python: the CUDA C++ that was made from it
  Diagnostics log;          ///< the compiler's warnings
  double compile_ms = 0;    ///< NVRTC's time in milliseconds; 0 if the result was cached
};

/// Compiles source text with the process's compiler, which all sessions share, and its cache. No device and
/// no driver is needed; PTX is only read. Throws CompileError with the compiler's messages,
/// Error(not_found) if there is no NVRTC, Error(usage) for options that do not fit, Error(cancelled).
/// Thread-safe.
QUERN_API CompiledSource compile_source(const CompileRequest& request);
/// Returns errors instead of throwing them.
QUERN_API Expected<CompiledSource> try_compile_source(const CompileRequest& request);

}  // namespace quern
