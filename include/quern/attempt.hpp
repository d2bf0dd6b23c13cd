// SPDX-License-Identifier: Apache-2.0
// component: base
#pragma once

#include <type_traits>
#include <utility>

#include "quern/error.hpp"
#include "quern/expected.hpp"
#include "quern/export.hpp"

namespace quern {

/// The diagnostics of an Error: its own, or one that is made of its ErrorCode and its message.
QUERN_API Diagnostics diagnostics_of(const Error& error);

/// Calls `action` if failure is expected: quern's exceptions are returned as diagnostics.
///
///   auto array = attempt([&] { return session.as_cuda_array(object); });
///   if (!array) std::fputs(to_string(array.errors()).c_str(), stderr);
template <class Action>
auto attempt(Action&& action) -> Expected<std::invoke_result_t<Action>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Action>>) {
      std::forward<Action>(action)();
      return {};
    } else {
      return std::forward<Action>(action)();
    }
  } catch (const Error& error) {
    return diagnostics_of(error);
  }
}

}  // namespace quern
