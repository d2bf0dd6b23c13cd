// SPDX-License-Identifier: Apache-2.0
// Checks of error messages for tests.
#pragma once

#include <string>

#include "quern/error.hpp"

namespace quern::test {

/// The message of the quern::Error that `action` throws; empty if it throws none.
std::string message(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace quern::test
