// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace quern::test {

/// The symbol that cuda.h calls for `name` in a program whose default stream is per thread.
std::string_view per_thread_name(std::string_view name);

}  // namespace quern::test
