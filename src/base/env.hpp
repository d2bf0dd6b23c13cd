// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace quern::base {

/// The variable's value; nothing if unset or empty.
std::optional<std::string> env(const char* name);

/// Is called for a variable with an invalid value: "QUERN_CPU_WORKERS is not a whole number, and is
/// ignored: many".
using EnvComplaint = void (*)(const char* variable, std::string_view message);

/// An EnvComplaint for callers without a report of their own, or that read a variable in each session: the
/// log, each message once in a process.
void warn_of_env(const char* variable, std::string_view message);

/// The variable as a whole number; nothing if unset, empty or not a number in full.
std::optional<std::uint64_t> env_number(const char* name, EnvComplaint complain = nullptr);

/// A size in bytes with an optional suffix K, M, G or T (powers of 1024, "512M").
std::optional<std::uint64_t> env_bytes(const char* name, EnvComplaint complain = nullptr);

/// The allowed range of a real number, and its description for the warning: "a number of seconds".
struct EnvRange {
  double least = 0;
  double most = 0;
  const char* kind = "a number";
};
/// The variable as a number of `range`; nothing if unset, empty or invalid.
std::optional<double> env_real(const char* name, const EnvRange& range, EnvComplaint complain = nullptr);

/// The index in `words` of the variable's value; nothing if unset, empty or not among them.
std::optional<std::size_t> env_word(const char* name, std::span<const std::string_view> words,
                                    EnvComplaint complain = nullptr);

/// The variable as 0 or 1; nothing if unset, empty or neither.
std::optional<bool> env_switch(const char* name, EnvComplaint complain = nullptr);

}  // namespace quern::base
