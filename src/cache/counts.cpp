// SPDX-License-Identifier: Apache-2.0
#include "cache/counts.hpp"

#include <fcntl.h>
#include <stdlib.h>

#include <array>
#include <exception>
#include <memory>

#include "base/held_signal.hpp"
#include "base/log.hpp"
#include "cache/key_lock.hpp"
#include "cache/store_folder.hpp"

namespace quern::cache {
namespace {

constexpr std::chrono::milliseconds kLongestWait{5};
using Numbers = std::array<std::uint64_t, 4>;

Numbers numbers_of(const StoreCounts& counts) {
  return {counts.processes, counts.hits, counts.misses, counts.writes};
}

/// A file of another length is no file of these.
Numbers read(const File& file) {
  Numbers numbers{};
  struct stat info{};
  const bool is_whole = ::fstat(file.get(), &info) == 0 && info.st_size == sizeof numbers &&
                        ::pread(file.get(), numbers.data(), sizeof numbers, 0) == sizeof numbers;
  return is_whole ? numbers : Numbers{};
}

Expected<File> open_layout(const DiskStoreOptions& options) {
  const FolderUse use = options.read_only ? FolderUse::read : FolderUse::write;
  const Expected<File> root = open_store_root(options.directory, use);
  if (!root) return root.errors();
  return open_store_folder(*root, options.directory, kLayout, use);
}

struct Watched {
  const DiskStore* store = nullptr;
  pid_t process = 0;
};

void at_exit(int, void* argument) noexcept try {
  const std::unique_ptr<const Watched> watched(static_cast<const Watched*>(argument));
  if (::getpid() != watched->process) return;  // a forked child has its parent's numbers
  const DiskStoreStats stats = watched->store->stats();
  if (stats.hits + stats.misses == 0) return;
  // The CPU device's plug-in has a store beside that of the library that loaded it.
  const std::uint64_t processes = base::is_log_forwarded() ? 0 : 1;
  add_counts(watched->store->options(), {processes, stats.hits, stats.misses, stats.writes});
} catch (const std::exception&) {  // no memory
}

}  // namespace

StoreCounts read_counts(const DiskStoreOptions& options) {
  const Expected<File> layout = open_layout(options);
  if (!layout) return {};
  const File file(
      ::openat(layout->get(), kCounts, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return {};
  const Numbers numbers = read(file);
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

void add_counts(const DiskStoreOptions& options, const StoreCounts& more) {
  if (options.read_only) return;
  const Expected<File> layout = open_layout(options);
  if (!layout) return;
  const RangeLock lock =
      RangeLock::wait(open_lock_file(*layout, kCounts), 0, sizeof(Numbers), kLongestWait, {});
  if (!lock.is_held()) return;
  Numbers numbers = read(lock.file());
  const Numbers added = numbers_of(more);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += added[i];
  const base::HeldSignal quiet(SIGXFSZ);
  static_cast<void>(::pwrite(lock.file().get(), numbers.data(), sizeof numbers, 0));
}

void add_counts_at_exit(const DiskStore& store) {
  if (!store.options().read_only) ::on_exit(&at_exit, new Watched{&store, ::getpid()});
}

}  // namespace quern::cache
