// SPDX-License-Identifier: Apache-2.0
#include "cache/usage.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <numeric>
#include <vector>

#include "base/held_signal.hpp"
#include "cache/entry_file.hpp"
#include "cache/folder_listing.hpp"
#include "cache/key_lock.hpp"

namespace quern::cache {
namespace {

constexpr std::chrono::milliseconds kLongestWait{50};
/// A killed writer's file is removed after this.
constexpr std::time_t kStale = 3600;
/// Among so many entries, the least recently used tenth is close enough to that of all.
constexpr std::size_t kSample = 256;

struct Numbers {
  std::array<std::uint64_t, kFolderCount> bytes{};
  std::uint64_t next = 0;  ///< the folder at which the next removal begins

  std::uint64_t sum() const { return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}); }
};
static_assert(sizeof(Numbers) == 8 * (kFolderCount + 1));

/// Returns false if they are not there, or not whole.
bool read(const File& file, Numbers& numbers) {
  struct stat info{};
  const bool is_whole = ::fstat(file.get(), &info) == 0 && info.st_size == sizeof numbers;
  return is_whole && ::pread(file.get(), &numbers, sizeof numbers, 0) == sizeof numbers &&
         numbers.next < kFolderCount;
}

void write(const File& file, const Numbers& numbers) {
  const base::HeldSignal quiet(SIGXFSZ);
  // A number that cannot be written is set right by a later removal.
  static_cast<void>(::pwrite(file.get(), &numbers, sizeof numbers, 0));
}

struct Candidate {
  unsigned folder = 0;
  std::string name;
  std::uint64_t bytes = 0;
  timespec used{};
};

/// The entries of a folder; removes what a killed writer left there. Returns their bytes.
std::uint64_t look_through(const File& folder, unsigned index, std::vector<Candidate>& found) {
  const std::time_t now = std::time(nullptr);
  std::uint64_t sum = 0;
  for_each_file(folder, [&](const std::string& name, const struct stat& info) {
    if (name.starts_with(kTemporaryPrefix)) {
      if (now - info.st_mtim.tv_sec > kStale) ::unlinkat(folder.get(), name.c_str(), 0);
      return;
    }
    const auto bytes = static_cast<std::uint64_t>(info.st_size);
    sum += bytes;
    found.push_back(
        {index, name, bytes, std::max(info.st_atim, info.st_mtim, [](const timespec& a, const timespec& b) {
           return std::pair(a.tv_sec, a.tv_nsec) < std::pair(b.tv_sec, b.tv_nsec);
         })});
  });
  return sum;
}

Expected<File> open_folder(const File& layout, unsigned index) {
  return open_store_folder(layout, "", folder_name(index), FolderUse::write);
}

void count_all(const File& layout, Numbers& numbers) {
  for (unsigned index = 0; index < kFolderCount; ++index) {
    std::vector<Candidate> ignored;
    const Expected<File> folder = open_folder(layout, index);
    numbers.bytes[index] = folder ? look_through(*folder, index, ignored) : 0;
  }
}

/// Removes the first of `candidates` until `most` bytes are removed and `is_enough`.
std::size_t remove(const File& layout, std::vector<Candidate>& candidates, std::uint64_t most,
                   std::uint64_t max_bytes, Numbers& numbers) {
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  std::size_t count = 0;
  std::uint64_t removed = 0;
  for (const Candidate& candidate : candidates) {
    if (numbers.sum() <= max_bytes && removed >= most) break;
    const Expected<File> folder = open_folder(layout, candidate.folder);
    if (!folder || ::unlinkat(folder->get(), candidate.name.c_str(), 0) != 0) continue;
    numbers.bytes[candidate.folder] -= std::min(numbers.bytes[candidate.folder], candidate.bytes);
    removed += candidate.bytes;
    ++count;
  }
  return count;
}

/// Requires both locks.
std::size_t remove_oldest(const File& layout, std::uint64_t max_bytes, std::size_t sample, Numbers& numbers) {
  std::vector<Candidate> candidates;
  std::uint64_t seen = 0;
  for (unsigned looked = 0; looked < kFolderCount && candidates.size() < sample; ++looked) {
    const auto index = static_cast<unsigned>(numbers.next);
    numbers.next = (numbers.next + 1) % kFolderCount;
    const Expected<File> folder = open_folder(layout, index);
    numbers.bytes[index] = folder ? look_through(*folder, index, candidates) : 0;
    seen += numbers.bytes[index];
  }
  if (numbers.sum() <= max_bytes) return 0;
  return remove(layout, candidates, seen / 10, max_bytes, numbers);
}

std::size_t update(const File& layout, std::uint64_t max_bytes, std::size_t sample,
                   const std::function<void(Numbers&)>& change) {
  const RangeLock numbers_lock =
      RangeLock::wait(open_lock_file(layout, kUsage), 0, sizeof(Numbers), kLongestWait, {});
  if (!numbers_lock.is_held()) return 0;
  Numbers numbers;
  if (!read(numbers_lock.file(), numbers)) {
    numbers = {};
    count_all(layout, numbers);
  } else {
    change(numbers);
  }
  std::size_t removed = 0;
  if (numbers.sum() > max_bytes || sample > kSample)
    removed = remove_oldest(layout, max_bytes, sample, numbers);
  write(numbers_lock.file(), numbers);
  return removed;
}

}  // namespace

std::string folder_name(unsigned index) {
  return {"0123456789abcdef"[(index >> 4) & 15], "0123456789abcdef"[index & 15]};
}

void remove_stale(const File& folder) {
  std::vector<Candidate> ignored;
  look_through(folder, 0, ignored);
}

std::size_t note_written(const File& layout, unsigned index, std::uint64_t bytes, std::uint64_t max_bytes) {
  return update(layout, max_bytes, kSample, [&](Numbers& numbers) { numbers.bytes[index] += bytes; });
}

std::size_t trim(const File& layout, std::uint64_t max_bytes) {
  return update(layout, max_bytes, SIZE_MAX, [](Numbers&) {});
}

}  // namespace quern::cache
