// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace quern::runtime {

class Context;

/// With QUERN_LEAK_REPORT=1 the log lists, at the process's exit, the live resources of a context.
void watch_for_leaks(const Context& context);
void forget_for_leaks(const Context& context) noexcept;

}  // namespace quern::runtime
