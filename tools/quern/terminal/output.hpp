// SPDX-License-Identifier: Apache-2.0
// Writes the program's output to stdout, and reports whether that succeeded.
#pragma once

#include <quern/error.hpp>

#include <string>
#include <string_view>

namespace quern::cli {

/// Writing to stdout failed.
class OutputError : public Error {
 public:
  explicit OutputError(int error);  ///< an errno; 0 where it is not known any more
  /// The reader of a pipe has exited, as `| head` does: no reason for a message.
  bool reader_left() const noexcept { return reader_left_; }

 private:
  bool reader_left_;
};

/// Opens /dev/null for closed standard descriptors, so that no file that is opened later becomes stdout.
/// Writing to a closed stdout still fails.
void hold_standard_descriptors();

/// From here on it is known whether a line on stdout has an end: device printf writes there, too, by libc's
/// stdout.
void watch_stdout();

/// Ends a line that a kernel left without an end, so that the program's output begins on a new line.
/// flush_output() reports failures.
void end_line() noexcept;

/// From here on stdout is the document's alone: output of the device, its driver or a library on descriptor 1
/// goes to stderr.
void keep_stdout_for_document();

/// Throws Error (usage) if `file` is stdout under one of its names and stdout is the document's alone.
void keep_off_document(const std::string& file);

/// Prints the document. Throws OutputError.
void print_document(std::string_view text);

/// Prints text on stdout. Throws OutputError.
void print_text(std::string_view text);

/// Throws OutputError if anything printed so far did not arrive.
void flush_output();

}  // namespace quern::cli
