// SPDX-License-Identifier: Apache-2.0
#include "serve/worker/sandbox.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "serve/worker/temporary_file.hpp"

using namespace quern::serve;

namespace {

namespace fs = std::filesystem;

/// A folder with a file `inside/a`, and a file `b` outside it.
struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "quern-sandbox-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
    fs::create_directory(path / "inside");
    std::ofstream(path / "inside/a") << "a";
    std::ofstream(path / "b") << "b";
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

/// Runs `check` in a sandboxed child process; returns true if it returned true.
bool inside(
    const std::vector<std::string>& readable, const std::function<bool()>& check,
    const std::function<void()>& before = [] {}) {
  const pid_t child = ::fork();
  if (child == 0) {
    before();
    enter_sandbox(readable);
    ::_exit(check() ? 0 : 1);
  }
  int status = 0;
  REQUIRE_EQ(::waitpid(child, &status, 0), child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status) == 0;
}

bool opens(const fs::path& path, int flags) {
  const int file = ::open(path.c_str(), flags, 0600);
  if (file < 0) return false;
  char byte = 0;
  return (flags & O_ACCMODE) != O_RDONLY || ::read(file, &byte, 1) == 1;
}

bool refused(long result) { return result == -1 && (errno == EPERM || errno == EACCES); }

}  // namespace

TEST_CASE("the sandbox of this kernel is whole, or says what is missing") {
  const pid_t child = ::fork();
  if (child == 0) {
    const SandboxState state = enter_sandbox({});
    ::_exit(state.no_new_privileges && state.seccomp && (state.landlock > 0) == state.missing.empty() ? 0
                                                                                                      : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

TEST_CASE("files below the given folders can be read, and no others") {
  const Folder folder;
  const std::vector<std::string> readable = {folder.path / "inside"};
  CHECK(inside(readable, [&] { return opens(folder.path / "inside/a", O_RDONLY); }));
  CHECK_FALSE(inside(readable, [&] { return opens(folder.path / "b", O_RDONLY); }));
  CHECK_FALSE(inside(readable, [&] { return opens(folder.path / "inside/../b", O_RDONLY); }));
  CHECK_FALSE(inside(readable, [&] { return opens("/etc/passwd", O_RDONLY); }));
  CHECK_FALSE(inside(readable, [&] { return opens("/proc/self/environ", O_RDONLY); }));
}

TEST_CASE("no file can be written, made, moved or removed") {
  const Folder folder;
  const std::vector<std::string> readable = {folder.path};
  const fs::path file = folder.path / "b";
  CHECK_FALSE(inside(readable, [&] { return opens(file, O_WRONLY); }));
  CHECK_FALSE(inside(readable, [&] { return opens(file, O_RDWR); }));
  CHECK_FALSE(inside(readable, [&] { return opens(folder.path / "new", O_WRONLY | O_CREAT); }));
  CHECK_FALSE(inside(readable, [&] { return opens(file, O_RDONLY | O_TRUNC); }));
  CHECK(inside(readable, [&] { return refused(::unlink(file.c_str())); }));
  CHECK(inside(readable, [&] { return refused(::rename(file.c_str(), (file.string() + "2").c_str())); }));
  CHECK(inside(readable, [&] { return refused(::mkdir((file.string() + "3").c_str(), 0700)); }));
  CHECK(inside(readable, [&] { return refused(::symlink("/", (file.string() + "4").c_str())); }));
  CHECK(inside(readable, [&] { return refused(::chmod(file.c_str(), 0777)); }));
  CHECK(fs::file_size(file) == 1);
}

TEST_CASE("there are no sockets, no programs, no other processes") {
  const pid_t parent = ::getpid();
  CHECK(inside({"/"}, [] { return refused(::socket(AF_INET, SOCK_STREAM, 0)); }));
  CHECK(inside({"/"}, [] { return refused(::socket(AF_UNIX, SOCK_STREAM, 0)); }));
  CHECK(inside({"/"}, [] {
    char* const words[] = {nullptr};
    return refused(::execve("/bin/true", words, words));
  }));
  CHECK(inside({"/"}, [] { return refused(::fork()); }));
  CHECK(inside({"/"}, [&] { return refused(::kill(parent, 0)); }));
  CHECK(inside({"/"}, [&] { return refused(::ptrace(PTRACE_ATTACH, parent, nullptr, nullptr)); }));
  CHECK(inside({"/"}, [&] { return refused(::prlimit(parent, RLIMIT_CORE, nullptr, nullptr)); }));
}

TEST_CASE("memory and threads are there for compiling") {
  CHECK(inside({}, [] {
    int value = 0;
    std::thread([&] { value = 1; }).join();
    return value == 1;
  }));
  CHECK(inside({}, [] {
    return ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
  }));
}

TEST_CASE("threads that were there before are behind the sandbox too") {
  const pid_t child = ::fork();
  if (child == 0) {
    int socket = 0;
    std::atomic<bool> entered{false};
    std::thread before([&] {
      while (!entered) std::this_thread::yield();
      socket = ::socket(AF_INET, SOCK_STREAM, 0);
    });
    enter_sandbox({});
    entered = true;
    before.join();
    ::_exit(socket == -1 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

TEST_CASE("a temporary file of fixed size is all that can be opened for writing") {
  const Folder folder;
  const std::string name = std::string(kTemporaryFolder) + "/edg0_1";
  CHECK(inside({folder.path.string()}, [&] {
    return refused(::open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)) &&
           refused(::open((folder.path / "b").c_str(), O_RDWR)) && refused(::unlink(name.c_str()));
  }));
  CHECK(inside(
      {folder.path.string()},
      [&] {
        const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (file < 0 || ::unlink(name.c_str()) != 0) return false;
        const bool holds = ::lseek(file, 4095, SEEK_SET) == 4095 && ::write(file, "", 1) == 1;
        void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
        return holds && memory != MAP_FAILED && ::write(file, "", 1) == -1 &&
               ::open(name.c_str(), O_RDONLY) == -1 &&
               refused(::open((folder.path / "c").c_str(), O_RDWR | O_CREAT, 0600)) &&
               refused(::open((folder.path / "b").c_str(), O_WRONLY)) &&
               refused(::unlink((folder.path / "b").c_str()));
      },
      [] { make_temporary_file(4096); }));
}

TEST_CASE("one folder can be given for writing") {
  const Folder folder;
  const fs::path inner = folder.path / "inside";
  const pid_t child = ::fork();
  if (child == 0) {
    enter_sandbox({}, inner.string());
    const bool good = opens(inner / "new", O_WRONLY | O_CREAT) && ::unlink((inner / "a").c_str()) == 0 &&
                      !opens(folder.path / "new", O_WRONLY | O_CREAT) &&
                      !opens(folder.path / "b", O_RDONLY) && ::unlink((folder.path / "b").c_str()) != 0 &&
                      refused(::socket(AF_INET, SOCK_STREAM, 0));
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK(fs::exists(inner / "new"));
  CHECK_FALSE(fs::exists(inner / "a"));
}
