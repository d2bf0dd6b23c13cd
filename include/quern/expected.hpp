// SPDX-License-Identifier: Apache-2.0
// component: base
#pragma once

#include <cstdlib>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "quern/diagnostic.hpp"

namespace quern {

/// A value, or the diagnostics that explain why there is none. Translators (front end, PTX, compile, the CPU
/// device's passes, cache, protocol) return this and never throw. `warnings()` may accompany a value.
template <class T>
class [[nodiscard]] Expected {
 public:
  using value_type = T;

  Expected(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Expected(Diagnostics errors) : state_(std::in_place_index<1>, std::move(errors)) {}  // NOLINT
  Expected(Diagnostic error) : state_(std::in_place_index<1>) {                        // NOLINT
    std::get<1>(state_).push_back(std::move(error));
  }

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& value() & { return require(), *std::get_if<0>(&state_); }
  const T& value() const& { return require(), *std::get_if<0>(&state_); }
  T&& value() && { return require(), std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// The errors; only if there is no value.
  const Diagnostics& errors() const& { return std::get<1>(state_); }
  Diagnostics&& errors() && { return std::get<1>(std::move(state_)); }

 private:
  void require() const {
    if (!has_value()) std::abort();  // reading the value of a failed Expected is a bug in the caller
  }
  std::variant<T, Diagnostics> state_;
};

template <>
class [[nodiscard]] Expected<void> {
 public:
  Expected() = default;
  Expected(Diagnostics errors) : errors_(std::move(errors)) {}  // NOLINT(google-explicit-constructor)
  Expected(Diagnostic error) : errors_(std::in_place) { errors_->push_back(std::move(error)); }  // NOLINT
  bool has_value() const noexcept { return !errors_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  const Diagnostics& errors() const& { return *errors_; }
  Diagnostics&& errors() && { return *std::move(errors_); }

 private:
  std::optional<Diagnostics> errors_;
};

}  // namespace quern
