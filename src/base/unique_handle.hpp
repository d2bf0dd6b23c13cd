// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace quern::base {

/// The one move-only owner. `Traits` gives `using type`, `static type null() noexcept` and
/// `static void release(type) noexcept`. Owners are composed of it and write no destructor.
template <class Traits>
class UniqueHandle {
 public:
  using type = typename Traits::type;

  UniqueHandle() noexcept = default;
  explicit UniqueHandle(type handle) noexcept : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(std::exchange(other.handle_, Traits::null())) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) reset(std::exchange(other.handle_, Traits::null()));
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() { reset(); }

  type get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return !(handle_ == Traits::null()); }
  [[nodiscard]] type release() noexcept { return std::exchange(handle_, Traits::null()); }
  void reset(type handle = Traits::null()) noexcept {
    const type old = std::exchange(handle_, handle);
    if (!(old == Traits::null())) Traits::release(old);
  }

 private:
  type handle_ = Traits::null();
};

}  // namespace quern::base
