// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quern::base {

/// The variable's value; nothing if unset or empty.
std::optional<std::string> env(const char* name);

/// Hears of a variable whose value is not what it should be: "QUERN_CPU_WORKERS is not a whole number, and is
/// passed over: many".
using EnvComplaint = void (*)(std::string_view message);

/// The variable as a whole number; nothing if unset, empty or not a number in full.
std::optional<std::uint64_t> env_number(const char* name, EnvComplaint complain = nullptr);

/// A size in bytes with an optional suffix K, M, G or T (powers of 1024, "512M").
std::optional<std::uint64_t> env_bytes(const char* name, EnvComplaint complain = nullptr);

}  // namespace quern::base
