// SPDX-License-Identifier: Apache-2.0
// Compiles requests that are data, without a device: for the compile service.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "abi/kernel_request.hpp"
#include "base/digest.hpp"
#include "quern/expected.hpp"

namespace quern::session {

/// NVRTC and the headers that requests are compiled with.
struct CompilerFacts {
  std::string nvrtc_path;  ///< empty if there is none; `missing` has the reason
  std::string nvrtc_version;
  std::string headers_version;  ///< empty: not known
  std::vector<std::string> include_directories;
  Diagnostic missing;
  /// The identity of NVRTC's libraries and of the headers' contents, as compile::ToolkitContents has them;
  /// empty if not known.
  std::string libraries, header_contents;
  std::string quern;  ///< compile::own_contents()
};

/// Keeps no results. Thread-safe.
class RequestCompiler {
 public:
  RequestCompiler();
  ~RequestCompiler();
  RequestCompiler(const RequestCompiler&) = delete;
  RequestCompiler& operator=(const RequestCompiler&) = delete;

  Expected<std::shared_ptr<const abi::PtxImage>> compile(const abi::KernelRequest& request);
  /// Opens NVRTC.
  CompilerFacts facts();

  /// Has NVRTC write the precompiled header of precompilable()'s result to `file`. This process and children
  /// forked from it may use it: add_precompiled() with the key that is returned.
  Expected<base::Digest> precompile(const abi::KernelRequest& lines, const std::string& file);
  /// `path` must stay readable.
  void add_precompiled(const base::Digest& key, std::string path);
  /// Runs of NVRTC that used a precompiled header.
  std::uint64_t precompiled_use_count() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The request for a precompiled header that would serve `request`: the #include lines with which its source
/// begins, with its target and options. Nothing if it begins with none, or if its options or its own headers
/// could change their meaning.
std::optional<abi::KernelRequest> precompilable(const abi::KernelRequest& request);

}  // namespace quern::session
