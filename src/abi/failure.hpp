// SPDX-License-Identifier: Apache-2.0
// The host's side of include/quern/cuda/debug.cuh: the first failure that a debug build of a kernel reports.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace quern::abi {

/// The module's variables that hold the failure and the source file's name.
inline constexpr const char* kFailureVariable = "quern_failure";
inline constexpr const char* kFailureFileVariable = "quern_failure_file";

/// The layout of quern::debug::failure in device memory.
struct Failure {
  std::uint32_t taken;
  std::int32_t line;
  std::uint32_t block[3];
  std::uint32_t thread[3];
  std::int32_t axis;
  std::int32_t ndim;
  std::int64_t index;
  std::int64_t extents[8];
  char text[256];
};
static_assert(std::is_trivially_copyable_v<Failure> && sizeof(Failure) == 368);

/// "kernel k failed in block (0, 0, 0), thread (9, 0, 0)\nk.py:7: IndexError: index 9 is out of bounds for
/// axis 0 with size 8 (shape (8,))"
std::string text_of(const Failure& failure, std::string_view kernel, std::string_view file);

}  // namespace quern::abi
