// SPDX-License-Identifier: Apache-2.0
#include "serve/worker/header_builder.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "serve/worker/sandbox.hpp"
#include "serve/worker/worker.hpp"

namespace quern::serve {
namespace {

constexpr unsigned kLongest_s = 60;
constexpr int kNiceness = 10;  // after all compiles that a client waits for
constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

Diagnostic failure(std::string reason) {
  Diagnostic diagnostic;
  diagnostic.code = "precompiled-header";
  diagnostic.message = std::move(reason);
  return diagnostic;
}

bool copy(const std::string& path, int to) {
  const int from = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::vector<char> piece(kPieceBytes);
  ssize_t count = -1;
  while (from >= 0 && (count = ::read(from, piece.data(), piece.size())) > 0)
    if (::write(to, piece.data(), static_cast<std::size_t>(count)) != count) return false;
  return count == 0;
}

std::string read_all(int pipe) {
  std::string text;
  char piece[512];
  for (ssize_t count = 0; (count = ::read(pipe, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<std::size_t>(count));
  return text;
}

}  // namespace

void HeaderBuilder::prepare() {
  const PrivateFolder folder(kMostFileBytes);
  abi::KernelRequest nothing;
  nothing.source.text = "\n";
  if (!folder.path().empty()) [[maybe_unused]]
    const auto ignored = compiler_.precompile(nothing, folder.path() + "/none");
}

bool HeaderBuilder::begin(const abi::KernelRequest& lines) {
  if (pipe_ >= 0) return false;
  folder_ = std::make_unique<PrivateFolder>(kMostFileBytes);
  int ends[2] = {-1, -1};
  if (folder_->path().empty() || ::pipe2(ends, O_CLOEXEC) != 0) return false;
  memory_ = ::memfd_create("quern-precompiled", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  process_ = memory_ < 0 ? -1 : ::fork();
  if (process_ == 0) build(lines, ends[1]);
  ::close(ends[1]);
  pipe_ = ends[0];
  if (process_ > 0) return true;
  [[maybe_unused]] const auto ignored = finish();
  return false;
}

void HeaderBuilder::build(const abi::KernelRequest& lines, int answer) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  [[maybe_unused]] const int niceness = ::nice(kNiceness);
  ::signal(SIGALRM, SIG_DFL);
  ::alarm(kLongest_s);
  ::setenv("TMPDIR", folder_->path().c_str(), 1);  // NVRTC makes a temporary file
  enter_sandbox(readable_folders(hello_), folder_->path());
  const std::string file = folder_->path() + "/header";
  const Expected<base::Digest> key = compiler_.precompile(lines, file);
  std::string text = key ? std::string(reinterpret_cast<const char*>(key->bytes.data()), key->bytes.size())
                         : key.errors().front().message;
  if (key && !copy(file, memory_)) text = "it cannot be copied";
  ::_exit(::write(answer, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && key ? 0 : 1);
}

Expected<std::uint64_t> HeaderBuilder::finish() {
  const std::string text = read_all(pipe_);
  ::close(std::exchange(pipe_, -1));
  int status = -1;
  while (process_ > 0 && ::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  folder_.reset();
  const int memory = std::exchange(memory_, -1);
  struct stat info{};
  base::Digest key;
  const bool good = status == 0 && text.size() == key.bytes.size() && ::fstat(memory, &info) == 0 &&
                    ::fcntl(memory, F_ADD_SEALS, kSeals) == 0;
  if (!good) {
    if (memory >= 0) ::close(memory);
    return failure(WIFEXITED(status) && !text.empty() ? text : "its process did not end as it should");
  }
  std::memcpy(key.bytes.data(), text.data(), key.bytes.size());
  compiler_.add_precompiled(key, "/proc/self/fd/" + std::to_string(memory));
  return static_cast<std::uint64_t>(info.st_size);
}

}  // namespace quern::serve
