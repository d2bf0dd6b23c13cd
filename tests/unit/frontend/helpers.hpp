// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "frontend/translate.hpp"

namespace quern::test {

inline abi::KernelSource python(std::string text) { return {abi::Language::python, std::move(text), "k.py"}; }

/// A file with the usual imports, which are four lines, followed by `text`.
inline std::string with_imports(const std::string& text) {
  return "import math\nimport numpy as np\nfrom numba import cuda, float32, float64, int32, int64, "
         "uint32\n\n" +
         text;
}

/// The CUDA C++ of the only kernel in `text`, or the diagnostics.
inline std::string cuda_of(const std::string& text, const std::string& signature) {
  const auto source = frontend::translate(python(with_imports(text)), "", signature);
  return source ? source->text : to_string(source.errors());
}

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace quern::test
