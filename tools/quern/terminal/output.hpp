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
  explicit OutputError(int error);  ///< an errno; 0 if it is not known any more
  /// True if the reader of a pipe has exited, as `| head` does. Then no message is needed.
  bool reader_left() const noexcept { return reader_left_; }

 private:
  bool reader_left_;
};

/// Opens /dev/null for closed standard descriptors, so that no file that is opened later becomes stdout.
/// Writing to a closed stdout still fails.
void hold_standard_descriptors();

/// From now on, the program tracks whether the last line on stdout is complete: device printf writes to
/// libc's stdout, too.
void watch_stdout();

/// Completes a line that a kernel left incomplete, so that the program's output begins on a new line.
/// flush_output() reports failures.
void end_line() noexcept;

/// From now on, only the document is written to stdout. Output of the device, its driver or a library on
/// descriptor 1 goes to stderr.
void keep_stdout_for_document();

/// Throws Error (usage) if `file` is one of the names of stdout and stdout is reserved for the document.
void keep_off_document(const std::string& file);

/// Prints the document. Throws OutputError.
void print_document(std::string_view text);

/// Prints text on stdout. Throws OutputError.
void print_text(std::string_view text);

/// Throws OutputError if any output so far could not be written.
void flush_output();

}  // namespace quern::cli
