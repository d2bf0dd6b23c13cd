// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace quern::base {

/// This thread's own T, made on first use. A thread_local T is destroyed before the process's exit handlers
/// run on the main thread, and code called from those would use it afterwards; this one is then made again
/// (and lives until the process's end). `Tag` distinguishes values of one type.
template <class T, class Tag = T>
T& thread_value() {
  static thread_local T* value = nullptr;  // without a destructor: valid to the very end
  if (value != nullptr) [[likely]]
    return *value;
  struct Owner {
    ~Owner() {
      delete value;
      value = nullptr;
    }
  };
  static thread_local const Owner owner;
  static_cast<void>(&owner);
  value = new T();
  return *value;
}

}  // namespace quern::base
