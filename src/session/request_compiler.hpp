// SPDX-License-Identifier: Apache-2.0
// Compiles requests that come as data, without a device: for the compile service.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "abi/kernel_request.hpp"
#include "quern/expected.hpp"

namespace quern::session {

/// NVRTC and the headers that requests are compiled with.
struct CompilerFacts {
  std::string nvrtc_path;  ///< empty: there is none; `missing` says why
  std::string nvrtc_version;
  std::string headers_version;  ///< empty: not known
  std::vector<std::string> include_directories;
  Diagnostic missing;
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

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::session
