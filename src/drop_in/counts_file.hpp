// SPDX-License-Identifier: Apache-2.0
// The file in which the counting library adds up: one for all processes of a program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace quern::drop_in {

/// Rows of text that processes share by mapping the file, so that neither a crash nor _exit() loses a count.
/// A row has 128 bytes:
///   0  calls          8 decimal digits; at most 99999999 is counted
///  16  failed         8 decimal digits: calls that answered another error than the next column's
///  32  not supported  8 decimal digits: calls that answered CUDA_ERROR_NOT_SUPPORTED
///  48  kind           "call", "missing" (asked for, and not there) or "compile"
///  56  name           a function as the program asked for it; of "compile": "kernels"
/// 127  a line feed
/// Blanks stand between. Rows are added at the end; the rest of the file is zero bytes.
struct alignas(8) CountsRow {
  enum Column : std::size_t { calls = 0, failed = 2, not_supported = 4 };

  std::atomic<std::uint64_t> words[6];
  char kind[8];
  char name[71];
  char end;

  /// Adds one. Thread-safe, also between processes.
  void add(Column column) noexcept;
};
static_assert(sizeof(CountsRow) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);

/// The row of that kind and name in the file that QUERN_CALL_COUNTS names. Null: the variable is not set, the
/// file cannot be mapped, or it is full. Thread-safe.
CountsRow* counts_row(const char* kind, const char* name) noexcept;

}  // namespace quern::drop_in
