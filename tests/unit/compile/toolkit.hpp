// SPDX-License-Identifier: Apache-2.0
// The NVRTC of this machine, for the tests that need one.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "compile/compiler.hpp"

namespace quern::test {

/// One compiler for all tests of the program.
inline compile::Compiler& compiler() {
  static compile::Compiler instance;
  return instance;
}

/// False, with a message that tools/test counts, if there is no NVRTC.
inline bool have_nvrtc() {
  static const bool found = compiler().toolkit().found;
  if (!found) MESSAGE("SKIPPED: no NVRTC on this machine");
  return found;
}
inline bool have_toolkit_headers() {
  static const bool found = !compiler().toolkit().include_directories.empty();
  if (!found) MESSAGE("SKIPPED: no toolkit headers on this machine");
  return found;
}

inline abi::KernelRequest cuda(std::string text, std::vector<std::string> expressions = {}) {
  abi::KernelRequest request;
  request.source = {abi::Language::cuda, std::move(text), "kernel.cu"};
  request.name_expressions = std::move(expressions);
  return request;
}

inline std::string errors_of(const Expected<compile::Compiler::Image>& image) {
  return image ? std::string() : to_string(image.errors());
}

}  // namespace quern::test
