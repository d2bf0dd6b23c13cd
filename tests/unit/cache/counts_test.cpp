// SPDX-License-Identifier: Apache-2.0
#include "cache/counts.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "store_test.hpp"

using namespace quern;
using namespace quern::cache;
using quern::test::in;
using quern::test::key;
using quern::test::Scratch;

TEST_CASE("the numbers of processes are added when they exit, once each, and not by their children") {
  const Scratch scratch;
  const DiskStoreOptions options = in(scratch.path / "cache");
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      static DiskStore store(options);
      add_counts_at_exit(store);
      if (!store.get(EntryKind::ptx_image, key(1))) store.put(EntryKind::ptx_image, key(1), "content");
      if (::fork() == 0) std::exit(0);
      ::wait(nullptr);
      std::exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  CHECK(read_counts(options) == StoreCounts{3, 2, 1, 1});
}

TEST_CASE("numbers in a damaged file are forgotten, and read-only stores write none") {
  const Scratch scratch;
  DiskStoreOptions options = in(scratch.path / "cache");
  CHECK(read_counts(options) == StoreCounts{});
  add_counts(options, {1, 2, 3, 4});  // there is no folder yet, and this does not create one
  CHECK_FALSE(std::filesystem::exists(scratch.path / "cache"));
  DiskStore(options).put(EntryKind::ptx_image, key(1), "content");
  add_counts(options, {1, 2, 3, 4});
  add_counts(options, {1, 2, 3, 4});
  CHECK(read_counts(options) == StoreCounts{2, 4, 6, 8});
  options.read_only = true;
  add_counts(options, {1, 2, 3, 4});
  CHECK(read_counts(options) == StoreCounts{2, 4, 6, 8});
  test::write(scratch.path / "cache/v1/counts", "short");
  CHECK(read_counts(options) == StoreCounts{});
}

TEST_CASE("the first write of a process removes what killed writers left there") {
  const Scratch scratch;
  const DiskStoreOptions options = in(scratch.path / "cache");
  DiskStore(options).put(EntryKind::ptx_image, key(7), "content");
  const std::filesystem::path folder = test::file_of(scratch.path / "cache", 7).parent_path();
  test::write(folder / ".tmp-old", "half");
  test::write(folder / ".tmp-new", "half");
  std::filesystem::last_write_time(folder / ".tmp-old",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  DiskStore(options).put(EntryKind::machine_code, key(7), "code");
  CHECK_FALSE(std::filesystem::exists(folder / ".tmp-old"));
  CHECK(std::filesystem::exists(folder / ".tmp-new"));
}
