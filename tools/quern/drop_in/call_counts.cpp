// SPDX-License-Identifier: Apache-2.0
#include "drop_in/call_counts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>
#include <quern/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

namespace quern::cli {
namespace {

/// A row of the file; the columns are those of src/drop_in/counts_file.hpp, separated by blanks.
struct Row {
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
  std::uint64_t not_supported = 0;
  std::string kind;
  std::string name;
  std::size_t position = 0;  ///< in the file
};

std::vector<Row> read_rows(const std::string& file) {
  std::ifstream stream(file);
  std::vector<Row> rows;
  // After the last row there are zero bytes, which are no number.
  for (Row row; stream >> row.calls >> row.failed >> row.not_supported >> row.kind >> row.name;) {
    row.position = rows.size();
    rows.push_back(row);
  }
  // Not stable_sort, which uses deprecated functions of libstdc++.
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.calls != b.calls ? a.calls > b.calls : a.position < b.position;
  });
  return rows;
}

/// The number of successful calls of the functions whose names begin with the text.
std::uint64_t successes(const std::vector<Row>& rows, const std::vector<std::string_view>& beginnings) {
  std::uint64_t sum = 0;
  for (const Row& row : rows)
    if (row.kind == "call" &&
        std::any_of(beginnings.begin(), beginnings.end(),
                    [&](std::string_view beginning) { return row.name.starts_with(beginning); }))
      sum += row.calls - row.failed - row.not_supported;
  return sum;
}

std::uint64_t compiled(const std::vector<Row>& rows) {
  for (const Row& row : rows)
    if (row.kind == "compile") return row.calls;
  return 0;
}

std::string calls_text(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    if (row.kind != "call") continue;
    text += fmt::format("{:>10} {}", row.calls, row.name);
    if (row.failed != 0) text += fmt::format(", {} failed", row.failed);
    if (row.not_supported != 0) text += fmt::format(", {} not supported", row.not_supported);
    text += '\n';
  }
  return text;
}

/// The functions that the program looked up without success, and those that returned
/// CUDA_ERROR_NOT_SUPPORTED.
std::string missing_text(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows)
    if ((row.kind == "missing" || row.not_supported != 0) &&
        std::find(names.begin(), names.end(), row.name) == names.end())
      names.push_back(row.name);
  std::sort(names.begin(), names.end());
  return fmt::format("missing functions: {}\n",
                     names.empty() ? "none" : fmt::format("{}", fmt::join(names, " ")));
}

/// The counting library cannot report an error.
void require_file_size() {
  constexpr rlim_t kBytes = 512 * 1024;  // of src/drop_in/counts_file.cpp
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= kBytes) return;
  throw Error(
      ErrorCode::io,
      fmt::format("cannot make the file of {} KiB for --stats: files may have {} bytes at most\nhint: "
                  "raise the limit (ulimit -f), or leave out --stats",
                  kBytes / 1024, limit.rlim_cur));
}

}  // namespace

CallCounts::CallCounts() {
  require_file_size();
  const char* const folder = std::getenv("TMPDIR");
  file_ = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/quern-exec-XXXXXX";
  const int file = ::mkostemp(file_.data(), O_CLOEXEC);
  if (file < 0)
    throw Error(
        ErrorCode::io,
        fmt::format("cannot make a file for --stats in {}: {}\nhint: set TMPDIR to a folder that can be "
                    "written",
                    file_, std::strerror(errno)));
  ::close(file);
}

CallCounts::~CallCounts() { ::unlink(file_.c_str()); }

std::string CallCounts::text() const {
  const std::vector<Row> rows = read_rows(file_);
  if (std::none_of(rows.begin(), rows.end(), [](const Row& row) { return row.kind == "call"; }))
    return "quern exec: no driver function was called\n" +
           (rows.empty() ? std::string() : missing_text(rows));
  return fmt::format(
      "quern exec: calls of the driver\n{}modules loaded: {}, kernels compiled: {}, launched: {}\n{}",
      calls_text(rows), successes(rows, {"cuModuleLoad", "cuLibraryLoad"}), compiled(rows),
      successes(rows, {"cuLaunchKernel", "cuLaunchCooperativeKernel"}), missing_text(rows));
}

}  // namespace quern::cli
