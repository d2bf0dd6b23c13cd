// SPDX-License-Identifier: Apache-2.0
#include "cache/disk_store.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "store_test.hpp"

using namespace quern;
using namespace quern::cache;
using quern::test::file_of;
using quern::test::in;
using quern::test::key;
using quern::test::Messages;
using quern::test::Scratch;
namespace fs = std::filesystem;

namespace {

bool is_not_root(const char* skipped) {
  if (::geteuid() != 0) MESSAGE(skipped);
  return ::geteuid() != 0;
}

constexpr EntryKind kImage = EntryKind::ptx_image;
constexpr EntryKind kFailed = EntryKind::failed_compile;

unsigned mode_of(const fs::path& path) {
  struct stat info{};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777U;
}

/// Messages in addition to the store's own two.
std::size_t files_under(const fs::path& path) {
  std::size_t count = 0;
  for (const fs::directory_entry& each : fs::recursive_directory_iterator(path))
    if (!each.is_directory() && each.path().filename() != "usage" && each.path().filename() != "locks")
      ++count;
  return count;
}

/// True if a child process in which `body` runs ends with status 0.
bool child(const auto& body) {
  const pid_t process = ::fork();
  if (process == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  REQUIRE(::waitpid(process, &status, 0) == process);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("what is put is found, by every store on the folder, under its kind and key alone") {
  const Scratch scratch;
  DiskStore store(in(scratch.path / "a" / "b"));
  CHECK(store.get(kImage, key(1)) == std::nullopt);
  CHECK_FALSE(fs::exists(scratch.path / "a"));  // reading creates no folder
  const std::string bytes("one\0two", 7);
  store.put(kImage, key(1), bytes, "components");
  CHECK(store.get(kImage, key(1)) == bytes);
  CHECK(store.get(kFailed, key(1)) == std::nullopt);
  CHECK(store.get(kImage, key(2)) == std::nullopt);
  DiskStore other(in(scratch.path / "a" / "b"));
  CHECK(other.get(kImage, key(1)) == bytes);
  other.put(kImage, key(1), "");
  CHECK(store.get(kImage, key(1)) == "");
  CHECK(store.stats().hits == 2);
  CHECK(store.stats().misses == 3);
  CHECK(store.stats().writes == 1);
}

TEST_CASE("folders and entries are for their owner alone, and nothing else is left there") {
  const Scratch scratch;
  const mode_t before = ::umask(0);
  DiskStore store(in(scratch.path / "cache"));
  store.put(kImage, key(7), "seven");
  ::umask(before);
  CHECK(mode_of(scratch.path / "cache") == 0700);
  CHECK(mode_of(scratch.path / "cache/v1") == 0700);
  CHECK(mode_of(scratch.path / "cache/v1/07") == 0700);
  CHECK(mode_of(file_of(scratch.path / "cache", 7)) == 0600);
  CHECK(files_under(scratch.path / "cache/v1/07") == 1);
}

TEST_CASE("a damaged entry is a miss, is set aside with a warning, and can be put again") {
  const Scratch scratch;
  DiskStore store(in(scratch.path));
  store.put(kImage, key(3), "three");
  std::string bytes = quern::test::read(file_of(scratch.path, 3));
  bytes.back() = 'E';
  quern::test::write(file_of(scratch.path, 3), bytes);
  {
    Messages messages;
    CHECK(store.get(kImage, key(3)) == std::nullopt);
    CHECK(messages.count(LogLevel::warning, "does not match its checksum") == 1);
    CHECK(store.get(kImage, key(3)) == std::nullopt);  // the entry is gone, so there is no second warning
    CHECK(messages.count(LogLevel::warning) == 1);
  }
  CHECK(quern::test::read(scratch.path / "v1/quarantine" / file_of("", 3).filename()) == bytes);
  store.put(kImage, key(3), "three");
  CHECK(store.get(kImage, key(3)) == "three");
  CHECK(store.stats().damaged == 1);
}

TEST_CASE("the entry of another key or of another kind is not taken for this one") {
  const Scratch scratch;
  const Messages messages;
  DiskStore store(in(scratch.path));
  store.put(kImage, key(3), "three");
  fs::create_directories(file_of(scratch.path, 4).parent_path());
  fs::copy_file(file_of(scratch.path, 3), file_of(scratch.path, 4));
  CHECK(store.get(kImage, key(4)) == std::nullopt);
  fs::copy_file(file_of(scratch.path, 3), file_of(scratch.path, 3, "failed_compile-1"));
  CHECK(store.get(kFailed, key(3)) == std::nullopt);
  CHECK(store.get(kImage, key(3)) == "three");
}

TEST_CASE("what is no file of this user's is no entry: links, pipes, folders, sockets, others' files") {
  const Scratch scratch;
  Messages messages;
  DiskStore store(in(scratch.path));
  store.put(kImage, key(3), "three");
  const fs::path file = file_of(scratch.path, 3);
  const fs::path copy = scratch.path / "copy";
  fs::rename(file, copy);
  SUBCASE("a symbolic link to a good entry") { fs::create_symlink(copy, file); }
  SUBCASE("a pipe") { REQUIRE(::mkfifo(file.c_str(), 0600) == 0); }
  SUBCASE("a folder") { fs::create_directory(file); }
  SUBCASE("another user's good entry") {
    if (is_not_root("SKIPPED: giving a file to another user takes root")) return;
    fs::copy_file(copy, file);
    REQUIRE(::chown(file.c_str(), 4321, 4321) == 0);
  }
  CHECK(store.get(kImage, key(3)) == std::nullopt);
  CHECK(messages.count(LogLevel::warning, "is damaged") == 1);
  CHECK_FALSE(fs::exists(fs::symlink_status(file)));
  store.put(kImage, key(3), "again");
  CHECK(store.get(kImage, key(3)) == "again");
  CHECK(quern::test::read(copy).ends_with("three"));  // the target of a link is not removed
}

TEST_CASE("a folder that is a link, that others may write to or that is another user's is not used") {
  const Scratch scratch;
  Messages messages;
  const fs::path cache = scratch.path / "cache";
  fs::create_directory(cache);
  SUBCASE("a link in the folder's place") {
    fs::create_directory_symlink(cache, scratch.path / "link");
    DiskStore store(in(scratch.path / "link"));
    store.put(kImage, key(1), "one");
    CHECK(store.get(kImage, key(1)) == std::nullopt);
  }
  SUBCASE("a link in the place of a folder in it") {
    fs::create_directory(scratch.path / "elsewhere");
    fs::create_directory_symlink(scratch.path / "elsewhere", cache / "v1");
    DiskStore store(in(cache));
    store.put(kImage, key(1), "one");
    CHECK(fs::is_empty(scratch.path / "elsewhere"));
  }
  SUBCASE("a folder that others may write to") {
    REQUIRE(::chmod(cache.c_str(), 0777) == 0);
    DiskStore store(in(cache));
    store.put(kImage, key(1), "one");
    CHECK(fs::is_empty(cache));
  }
  SUBCASE("another user's folder") {
    if (is_not_root("SKIPPED: giving a folder to another user takes root")) return;
    REQUIRE(::chown(cache.c_str(), 4321, 4321) == 0);
    DiskStore store(in(cache));
    store.put(kImage, key(1), "one");
    CHECK(fs::is_empty(cache));
  }
  SUBCASE("a file") {
    quern::test::write(scratch.path / "file", "");
    DiskStore store(in(scratch.path / "file"));
    store.put(kImage, key(1), "one");
  }
  CHECK(messages.count(LogLevel::warning, "cannot use") == 1);
  CHECK(messages.count(LogLevel::warning, "QUERN_CACHE_DIR") == 1);  // what to do
}

TEST_CASE("a read-only store changes nothing") {
  const Scratch scratch;
  {
    DiskStore store(in(scratch.path));
    store.put(kImage, key(1), "one");
    store.put(kImage, key(2), "two");
  }
  std::string bytes = quern::test::read(file_of(scratch.path, 2));
  bytes.back() = 'x';
  quern::test::write(file_of(scratch.path, 2), bytes);
  DiskStoreOptions options = in(scratch.path);
  options.read_only = true;
  DiskStore store(options);
  const Messages messages;
  CHECK(store.get(kImage, key(1)) == "one");
  CHECK(store.get(kImage, key(2)) == std::nullopt);
  CHECK(quern::test::read(file_of(scratch.path, 2)) == bytes);
  store.put(kImage, key(3), "three");
  CHECK(store.get(kImage, key(3)) == std::nullopt);
  CHECK(files_under(scratch.path) == 2);
}

TEST_CASE("a file that becomes too large ends no process and leaves nothing; it is told once") {
  const Scratch scratch;
  const bool good = child([&] {
    const rlimit limit{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    Messages messages;
    DiskStore store(in(scratch.path / "cache"));
    store.put(kImage, key(1), std::string(100'000, 'x'));
    store.put(kImage, key(2), std::string(100'000, 'x'));
    const bool is_told = messages.count(LogLevel::warning, "cannot write") == 1;
    store.put(kImage, key(3), "small");
    return is_told && store.stats().failed_writes == 2 && store.get(kImage, key(1)) == std::nullopt &&
           store.get(kImage, key(3)) == "small";
  });
  CHECK(good);
  CHECK(files_under(scratch.path / "cache/v1") == 1);
}

TEST_CASE("without file descriptors everything is a miss, and later ones work again") {
  const Scratch scratch;
  const bool good = child([&] {
    Messages messages;
    DiskStore store(in(scratch.path));
    store.put(kImage, key(1), "one");
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit none{0, limit.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const bool is_miss = store.get(kImage, key(1)) == std::nullopt;
    store.put(kImage, key(2), "two");
    ::setrlimit(RLIMIT_NOFILE, &limit);
    return is_miss && store.get(kImage, key(1)) == "one" && store.stats().damaged == 0;
  });
  CHECK(good);
}

TEST_CASE("a program may close all files, and remove the folder, while the store is in use") {
  const Scratch scratch;
  const bool good = child([&] {
    DiskStore store(in(scratch.path / "cache"));
    store.put(kImage, key(1), "one");
    ::close_range(3, ~0U, 0);
    const bool is_hit = store.get(kImage, key(1)) == "one";
    fs::remove_all(scratch.path / "cache");
    const bool is_miss = store.get(kImage, key(1)) == std::nullopt;
    store.put(kImage, key(1), "two");
    return is_hit && is_miss && store.get(kImage, key(1)) == "two";
  });
  CHECK(good);
}

TEST_CASE("an entry larger than the bound is not kept") {
  const Scratch scratch;
  DiskStoreOptions options = in(scratch.path);
  options.max_bytes = 1000;
  DiskStore store(options);
  store.put(kImage, key(1), std::string(905, 'x'));
  CHECK(store.get(kImage, key(1)) == std::nullopt);
  store.put(kImage, key(1), std::string(904, 'x'));  // with the header's 96 bytes
  CHECK(store.get(kImage, key(1)) == std::string(904, 'x'));
}

TEST_CASE("a hit sets the time of access, at most once a minute") {
  const Scratch scratch;
  DiskStore store(in(scratch.path));
  store.put(kImage, key(1), "one");
  const fs::path file = file_of(scratch.path, 1);
  const auto accessed = [&](std::time_t before_s) {
    const std::time_t then = std::time(nullptr) - before_s;
    const timespec times[2] = {{then, 0}, {then, 0}};
    REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
    CHECK(store.get(kImage, key(1)) == "one");
    struct stat info{};
    REQUIRE(::stat(file.c_str(), &info) == 0);
    CHECK(info.st_mtim.tv_sec == then);
    return info.st_atim.tv_sec - then;
  };
  CHECK(accessed(3600) >= 3600);
}

TEST_CASE("a value is computed where it is not on the disk, and then found there") {
  const Scratch scratch;
  DiskStore store(in(scratch.path));
  int runs = 0;
  const auto compute = [&]() -> std::optional<std::string> {
    ++runs;
    return "made";
  };
  CHECK(store.get_or_compute(kImage, key(1), [] { return std::optional<std::string>(); }) == std::nullopt);
  CHECK(store.get_or_compute(kImage, key(1), compute) == "made");
  CHECK(store.get_or_compute(kImage, key(1), compute) == "made");
  CHECK(runs == 1);
  CHECK_THROWS_AS(store.get_or_compute(kImage, key(2),
                                       []() -> std::optional<std::string> { throw std::runtime_error("x"); }),
                  std::runtime_error);
}
