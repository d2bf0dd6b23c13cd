// SPDX-License-Identifier: Apache-2.0
// component: runtime
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

#include "quern/ndarray.hpp"

namespace quern {

/// The value that the host gives to a module-level name of a Kernel Python file, a new name or one of the
/// file's: an array, or (0-d) a number. Numbers keep their type; std::int64_t and double are Python's own.
struct Constant {
  Constant(std::string name_, NDArray value_) : name(std::move(name_)), value(std::move(value_)) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  Constant(std::string name_, T value_) : name(std::move(name_)), value(NDArray::scalar(value_)) {}

  std::string name;
  NDArray value;
};

}  // namespace quern
