// SPDX-License-Identifier: Apache-2.0
// Threads and processes that share a store: which one computes, and which entries are removed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "cache/listing.hpp"
#include "store_test.hpp"

using namespace quern;
using namespace quern::cache;
using quern::test::file_of;
using quern::test::in;
using quern::test::key;
using quern::test::Scratch;
namespace fs = std::filesystem;

namespace {

constexpr EntryKind kImage = EntryKind::ptx_image;

/// Forks; the child runs `body` and ends.
pid_t start(const auto& body) {
  const pid_t process = ::fork();
  if (process == 0) {
    body();
    ::_exit(0);
  }
  REQUIRE(process > 0);
  return process;
}

int end_of(pid_t process) {
  int status = 0;
  REQUIRE(::waitpid(process, &status, 0) == process);
  return status;
}

/// A computation that takes some time and appends a byte to `file`.
auto slow(const fs::path& file) {
  return [file]() -> std::optional<std::string> {
    const int log = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    static_cast<void>(::write(log, "x", 1));
    ::close(log);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return "made";
  };
}

void set_used(const fs::path& file, std::time_t before_s) {
  const std::time_t then = std::time(nullptr) - before_s;
  const timespec times[2] = {{then, 0}, {then, 0}};
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("of many processes that ask for one key at once, one computes and all get its value") {
  const Scratch scratch;
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i)
    children.push_back(start([&] {
      DiskStore store(in(scratch.path / "cache"));
      if (store.get_or_compute(kImage, key(1), slow(scratch.path / "runs")) != "made") ::_exit(1);
    }));
  for (const pid_t each : children) CHECK(end_of(each) == 0);
  CHECK(fs::file_size(scratch.path / "runs") == 1);
}

TEST_CASE("of many threads, too, also with stores of their own; other keys do not wait") {
  const Scratch scratch;
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&] {
      DiskStore store(in(scratch.path / "cache"));
      if (store.get_or_compute(kImage, key(1), slow(scratch.path / "runs")) == "made") ++good;
    });
  DiskStore store(in(scratch.path / "cache"));
  const DiskStore::Claim one = store.claim(key(2));
  const DiskStore::Claim other = store.claim(key(3));
  CHECK(one.is_held());
  CHECK(other.is_held());
  for (std::thread& thread : threads) thread.join();
  CHECK(good == 6);
  CHECK(fs::file_size(scratch.path / "runs") == 1);
}

TEST_CASE("a claim ends with its holder, however it ends, and who waits may give up") {
  const Scratch scratch;
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t holder = start([&] {
    DiskStore store(in(scratch.path));
    const DiskStore::Claim own = store.claim(key(1));
    // it inherits the holder's files and keeps running, but must not block others
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      ::close_range(3, ~0U, 0);
      ::pause();
    }
    static_cast<void>(::write(pipe[1], &grandchild, sizeof grandchild));
    ::pause();
  });
  pid_t grandchild = 0;
  REQUIRE(::read(pipe[0], &grandchild, sizeof grandchild) == sizeof grandchild);
  DiskStore store(in(scratch.path));
  int questions = 0;
  CHECK_FALSE(store.claim(key(1), [&] { return ++questions < 5; }).is_held());
  CHECK(questions == 5);
  ::kill(holder, SIGKILL);
  end_of(holder);
  CHECK(store.claim(key(1)).is_held());
  ::kill(grandchild, SIGKILL);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("a child that was forked while a claim was held does not keep it") {
  const Scratch scratch;
  DiskStore store(in(scratch.path));
  pid_t child = 0;
  {
    const DiskStore::Claim own = store.claim(key(1));
    REQUIRE(own.is_held());
    child = start([] { ::pause(); });
  }
  CHECK(store.claim(key(1), [] { return false; }).is_held());
  ::kill(child, SIGKILL);
  end_of(child);
}

TEST_CASE("the least recently used entries make room") {
  const Scratch scratch;
  DiskStoreOptions options = in(scratch.path);
  options.max_bytes = 10'000;
  DiskStore store(options);
  for (std::uint8_t i = 0; i < 9; ++i) {
    store.put(kImage, key(i), std::string(900, 'x'));
    set_used(file_of(scratch.path, i), 1000 - i);
  }
  CHECK(store.stats().evictions == 0);
  CHECK(store.get(kImage, key(0)));  // the oldest entry was used again
  store.put(kImage, key(9), std::string(900, 'x'));
  store.put(kImage, key(10), std::string(900, 'x'));
  CHECK(store.stats().evictions >= 1);
  CHECK_FALSE(fs::exists(file_of(scratch.path, 1)));
  CHECK(fs::exists(file_of(scratch.path, 0)));
  CHECK(fs::exists(file_of(scratch.path, 10)));
  std::uint64_t sum = 0;
  for (std::uint8_t i = 0; i < 11; ++i)
    if (fs::exists(file_of(scratch.path, i))) sum += fs::file_size(file_of(scratch.path, i));
  CHECK(sum <= options.max_bytes);
  CHECK(sum >= options.max_bytes / 2);
}

TEST_CASE("the bound holds where the numbers are wrong or missing, and stale temporary files are removed") {
  const Scratch scratch;
  DiskStoreOptions options = in(scratch.path);
  DiskStore large(options);
  for (std::uint8_t i = 0; i < 20; ++i) large.put(kImage, key(i), std::string(900, 'x'));
  const fs::path stale = scratch.path / "v1/01/.tmp-1-2-3";
  const fs::path young = scratch.path / "v1/02/.tmp-1-2-3";
  quern::test::write(stale, "x");
  quern::test::write(young, "x");
  set_used(stale, 4000);
  SUBCASE("missing") { fs::remove(scratch.path / "v1/usage"); }
  SUBCASE("cut") { fs::resize_file(scratch.path / "v1/usage", 100); }
  SUBCASE("wrong") {
    std::fstream file(scratch.path / "v1/usage", std::ios::binary | std::ios::in | std::ios::out);
    file << std::string(8 * 256, '\1') + std::string(8, '\0');
  }
  SUBCASE("right") {}
  options.max_bytes = 10'000;
  DiskStore small(options);
  small.put(kImage, key(30), std::string(900, 'x'));
  std::uint64_t sum = 0;
  for (const fs::directory_entry& each : fs::recursive_directory_iterator(scratch.path))
    if (each.path().filename().string().ends_with("ptx_image-1")) sum += each.file_size();
  CHECK(sum <= options.max_bytes);
  CHECK(sum > 8'000);
  CHECK_FALSE(fs::exists(stale));
  CHECK(fs::exists(young));
}

TEST_CASE("verifying sets the numbers right, holds the bound and removes stale temporary files") {
  const Scratch scratch;
  DiskStoreOptions options = in(scratch.path);
  DiskStore store(options);
  for (std::uint8_t i = 0; i < 20; ++i) store.put(kImage, key(i), std::string(900, 'x'));
  quern::test::write(scratch.path / "v1/01/.tmp-1-2-3", "x");
  set_used(scratch.path / "v1/01/.tmp-1-2-3", 4000);
  options.max_bytes = 10'000;
  const Expected<Verification> result = verify_entries(options);
  REQUIRE(result);
  CHECK(result->checked_count == 20);
  CHECK(result->damaged.empty());
  CHECK_FALSE(fs::exists(scratch.path / "v1/01/.tmp-1-2-3"));
  const auto left = list_entries(options);
  REQUIRE(left);
  CHECK(left->size() <= 10);
  CHECK(left->size() >= 8);
  CHECK(*clear_entries(options) == left->size());
  CHECK(list_entries(options)->empty());
}

TEST_CASE("the store works in exit handlers, with all signals blocked") {
  const Scratch scratch;
  const pid_t child = start([&] {
    static DiskStore* store = new DiskStore(in(scratch.path));
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::atexit([] {
      store->put(kImage, key(1), "late");
      const DiskStore::Claim own = store->claim(key(2));
      ::_exit(store->get(kImage, key(1)) == "late" && own.is_held() ? 0 : 1);
    });
    std::exit(2);
  });
  CHECK(end_of(child) == 0);
}
