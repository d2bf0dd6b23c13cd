// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace quern::base {

/// The variable's value; nothing if unset or empty.
std::optional<std::string> env(const char* name);

/// The variable as a whole number; nothing if unset, empty or not a number in full.
std::optional<std::uint64_t> env_number(const char* name);

/// A size in bytes with an optional suffix K, M, G or T (powers of 1024, "512M").
std::optional<std::uint64_t> env_bytes(const char* name);

}  // namespace quern::base
