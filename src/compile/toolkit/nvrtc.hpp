// SPDX-License-Identifier: Apache-2.0
// NVRTC, opened at run time. Only this component includes nvrtc.h.
#pragma once

#include <nvrtc.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "abi/kernel_request.hpp"
#include "base/dynamic_library.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// The functions of nvrtc_functions.def. None is null in an open Nvrtc.
struct NvrtcTable {
#define QUERN_NVRTC_FUNCTION(name) decltype(&::name) name = nullptr;
#include "compile/toolkit/nvrtc_functions.def"
};

/// nvrtcSetFlowCallback, which newer headers have.
using SetFlowCallback = nvrtcResult (*)(nvrtcProgram, int (*)(void*, void*), void*);

/// One run of NVRTC, as it sees it.
struct NvrtcInput {
  std::string source;
  std::string file_name;
  std::vector<abi::HeaderText> headers;
  std::vector<std::string> options;
  std::vector<std::string> name_expressions;
  /// Asked now and then while NVRTC works, from its threads; false cancels the run. An NVRTC
  /// without nvrtcSetFlowCallback does not ask.
  std::function<bool()> goes_on;
};
struct NvrtcOutput {
  bool success = false;
  bool cancelled = false;
  std::string status;                      ///< NVRTC's name of the result
  std::string log;                         ///< errors and warnings, as text
  std::string ptx;                         ///< empty where NVRTC made none
  std::vector<std::byte> machine_code;     ///< for a real architecture
  std::vector<std::string> lowered_names;  ///< one for each name expression
};

/// An open NVRTC. Immutable; compile() may run on many threads at once (NVRTC is thread-safe across
/// programs).
class Nvrtc {
 public:
  /// Opens `path` (a bare name is passed to the loader) and checks that every function exists.
  static Expected<std::shared_ptr<const Nvrtc>> open(const std::string& path);

  int major() const noexcept { return major_; }
  int minor() const noexcept { return minor_; }
  const std::string& path() const noexcept { return library_.path(); }
  /// Architectures that it compiles for, ascending: 75, 80, ...
  const std::vector<std::uint32_t>& architectures() const noexcept { return architectures_; }

  /// It takes --create-pch and --use-pch (12.8 and later).
  bool has_precompiled_headers() const noexcept { return has_precompiled_headers_; }

  NvrtcOutput compile(const NvrtcInput& input) const;

 private:
  explicit Nvrtc(base::DynamicLibrary library) : library_(std::move(library)) {}
  base::DynamicLibrary library_;
  std::optional<base::DynamicLibrary> builtins_;
  SetFlowCallback set_flow_callback_ = nullptr;  ///< null if this NVRTC has none
  bool has_precompiled_headers_ = false;
  NvrtcTable table_;
  int major_ = 0;
  int minor_ = 0;
  std::vector<std::uint32_t> architectures_;
};

}  // namespace quern::compile
