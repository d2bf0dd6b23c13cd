// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace quern::base {

/// Calls `destroy(object)` when this thread has ended: after the destructors of its thread_local objects and
/// those of other pthread keys, which may still use the object. Never for a thread that exit() ends or that
/// calls it. Throws std::bad_alloc.
void at_thread_end(void (*destroy)(void* object), void* object);

/// This thread's own T, made on first use, destroyed by at_thread_end(). A thread_local T would be destroyed
/// while the thread still calls us: on the main thread before exit handlers and destructors of static
/// objects. `Tag` distinguishes values of one type. Throws std::bad_alloc.
template <class T, class Tag = T>
T& thread_value() {
  static thread_local T* value = nullptr;  // without a destructor: valid to the very end
  if (value != nullptr) [[likely]]
    return *value;
  auto made = std::make_unique<T>();
  at_thread_end(
      [](void* object) {
        delete static_cast<T*>(object);
        value = nullptr;
      },
      made.get());
  value = made.release();
  return *value;
}

}  // namespace quern::base
