// SPDX-License-Identifier: Apache-2.0
#include "terminal/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace quern::cli {
namespace {

/// The descriptor for the document. Descriptors belong to the process, so this state is global.
int document_descriptor = STDOUT_FILENO;

/// The last byte written to stdout, by any code.
std::atomic<char> last_byte = '\n';

/// Returns false with the reason in errno.
bool write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0)
      text.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR)
      return false;
  }
  return true;
}

ssize_t pass_on(void*, const char* text, std::size_t size) noexcept {
  if (size == 0 || !write_all(STDOUT_FILENO, {text, size})) return 0;
  last_byte = text[size - 1];
  return static_cast<ssize_t>(size);
}

bool has_no_reader() {
  pollfd state{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&state, 1, 0) > 0 && (state.revents & POLLERR) != 0;
}

}  // namespace

OutputError::OutputError(int error)
    : Error(ErrorCode::io,
            fmt::format("cannot write the output: {}\nhint: see that stdout is open and that there is space "
                        "where it goes; what arrived there is not all",
                        error != 0 ? std::strerror(error) : "an earlier write failed")),
      reader_left_(error == EPIPE) {}

void hold_standard_descriptors() {
  // The modes are deliberately wrong: reading stdin and writing stdout fail as on closed descriptors.
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_RDWR};
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", kModes[descriptor]));  // the lowest free one is this one
}

void watch_stdout() {
  std::FILE* const watched = ::fopencookie(nullptr, "w", {nullptr, &pass_on, nullptr, nullptr});
  if (watched == nullptr) return;
  std::setvbuf(watched, nullptr, ::isatty(STDOUT_FILENO) != 0 ? _IOLBF : _IOFBF, BUFSIZ);
  stdout = watched;
}

void end_line() noexcept {
  if (std::fflush(stdout) == 0 && last_byte != '\n') std::fputc('\n', stdout);
}

void keep_stdout_for_document() {
  std::fflush(stdout);
  const int kept = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (kept < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) throw OutputError(errno);
  document_descriptor = kept;
}

void keep_off_document(const std::string& file) {
  if (document_descriptor == STDOUT_FILENO) return;
  for (const std::string_view name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})
    if (file == name)
      throw Error(ErrorCode::usage, fmt::format("cannot write to {} with --json, which prints its document "
                                                "there\nhint: give another file, or leave out --json",
                                                file));
}

void print_document(std::string_view text) {
  if (document_descriptor == STDOUT_FILENO) return print_text(text);
  if (!write_all(document_descriptor, text)) throw OutputError(errno);
}

void print_text(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw OutputError(errno);
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw OutputError(errno);
  // The reason was known only when the write failed; here only the error flag remains.
  if (std::ferror(stdout) != 0) throw OutputError(has_no_reader() ? EPIPE : 0);
}

}  // namespace quern::cli
