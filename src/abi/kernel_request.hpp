// SPDX-License-Identifier: Apache-2.0
// The input and the output of a compilation: plain data between the front end, the compiler and the launcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quern/diagnostic.hpp"
#include "quern/dtype.hpp"

namespace quern::abi {

enum class Language : std::uint8_t { cuda, ptx, python };

/// Kernel source text and the name it is known by in messages (a path, or "<string>").
struct KernelSource {
  Language language = Language::cuda;
  std::string text;
  std::string file_name = "<string>";
};

/// The architecture that NVRTC compiles for: compute_89 PTX, and for a GPU also its own machine code (sm_90).
struct Target {
  std::uint32_t compute = 89;       ///< virtual architecture of the PTX
  std::optional<std::uint32_t> sm;  ///< real architecture; absent if the image has PTX only
  std::uint32_t driver_version =
      0;  ///< cuDriverGetVersion; the PTX's .version must not be newer than this driver accepts. 0 means any
  friend bool operator==(const Target&, const Target&) = default;
};

/// A value that the host gives to a name at the file's level of Kernel Python.
struct Constant {
  std::string name;
  Dtype dtype = Dtype::int64;
  std::vector<std::int64_t> shape;  ///< empty means a number
  std::vector<std::byte> bytes;     ///< the elements in C order
};

/// A text that sources include by that name without its being a file.
struct HeaderText {
  std::string name;
  std::string text;
};

struct KernelRequest {
  KernelSource source;
  std::vector<std::string> name_expressions;  ///< "scale<float>", "ns::kernel": what must be instantiated
  Target target;
  std::vector<std::string> options;  ///< NVRTC's, after ours: "--fmad=false", "-DN=4", "-Iinclude"
  std::string entry;                 ///< Kernel Python: which kernel; empty if the source has only one
  std::string signature;  ///< Kernel Python: its argument types, "float32, float32[::1]"; empty if the
                          ///< decorator's count
  std::vector<Constant> constants;  ///< Kernel Python: bound by the host
  std::vector<HeaderText> headers;  ///< the caller's own
};

/// A kernel parameter in the parameter buffer; bytes.
struct ParameterInfo {
  std::string name;  ///< the author's, where a reading of the source gives it; else empty
  std::string type;  ///< "const float*", "int"; else the PTX's ".f32", or empty
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t align = 1;
  bool pointer = false;    ///< as far as known: an address (T*, T[], T&)
  bool read_only = false;  ///< a pointer to const, as far as known
  std::string pointee;     ///< "float" of "const float*", where the type is known to be a pointer; else empty
};

/// One kernel of a compiled module.
struct EntryInfo {
  std::string name;          ///< the author's: "saxpy", "scale<float>"
  std::string lowered_name;  ///< in the PTX
  std::vector<ParameterInfo> parameters;
  std::uint64_t static_shared_bytes = 0;
  std::uint32_t max_threads = 0;  ///< from .maxntid/.reqntid; 0 if not limited by the kernel
  bool reports_failures = false;  ///< a debug build of Kernel Python: abi/failure.hpp
  bool grid_wide = false;         ///< Kernel Python that waits for its grid: launched cooperatively
};

/// A variable of a compiled module in global or constant memory.
struct VariableInfo {
  std::string name;          ///< the author's: "gain", "ns::table"
  std::string lowered_name;  ///< in the PTX
};

/// The output of NVRTC. Immutable once built; shared between threads.
struct PtxImage {
  std::string ptx;
  std::vector<std::byte> machine_code;  ///< cubin for Target::sm; empty where none was asked for
  std::vector<EntryInfo> entries;
  std::vector<VariableInfo> variables;
  std::string cuda_source;  ///< of Kernel Python: the CUDA C++ that NVRTC was given
  bool of_python = false;   ///< made from Kernel Python, also where `cuda_source` was left out
  Diagnostics log;          ///< warnings that came with it
  double compile_ms = 0;    ///< NVRTC's time; 0 where the image came from a cache
};

}  // namespace quern::abi
