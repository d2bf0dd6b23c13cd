// SPDX-License-Identifier: Apache-2.0
#include "drop_in/counts_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/held_signal.hpp"

namespace quern::drop_in {
namespace {

constexpr std::size_t kRows = 4096;
constexpr std::uint64_t kZeros = 0x3030303030303030;   // "00000000"
constexpr std::uint64_t kBlanks = 0x2020202020202020;  // eight of them
constexpr unsigned kDigits = 8;

/// "00000129" -> "00000130", the first digit in the lowest byte; "99999999" stays.
std::uint64_t next(std::uint64_t digits) noexcept {
  std::uint64_t result = digits;
  for (unsigned digit = kDigits; digit-- > 0;) {
    const unsigned shift = 8 * digit;
    if ((result >> shift & 0xff) != '9') return result + (std::uint64_t{1} << shift);
    result -= std::uint64_t{9} << shift;
  }
  return digits;
}

/// Every opening has its own lock: threads exclude each other as processes do, and no child inherits a lock.
class LockedFile {
 public:
  LockedFile() noexcept {
    const char* const name = std::getenv("QUERN_CALL_COUNTS");
    if (name == nullptr || *name == '\0') return;
    file_ = ::open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file_ >= 0 && ::flock(file_, LOCK_EX) == 0) return;
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }
  ~LockedFile() {
    if (file_ < 0) return;
    ::flock(file_, LOCK_UN);  // a mapping keeps what close() would release
    ::close(file_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  bool is_open() const noexcept { return file_ >= 0; }

  CountsRow* map() const noexcept {
    constexpr std::size_t kBytes = kRows * sizeof(CountsRow);
    const base::HeldSignal quiet(SIGXFSZ);
    if (::lseek(file_, 0, SEEK_END) < static_cast<off_t>(kBytes) && ::ftruncate(file_, kBytes) != 0)
      return nullptr;
    void* const rows = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    return rows == MAP_FAILED ? nullptr : static_cast<CountsRow*>(rows);
  }

 private:
  int file_ = -1;
};

bool is_named(const CountsRow& row, const char* kind, const char* name) noexcept {
  char wanted[sizeof row.kind + sizeof row.name];
  std::memset(wanted, ' ', sizeof wanted);
  std::memcpy(wanted, kind, ::strnlen(kind, sizeof row.kind - 1));
  std::memcpy(wanted + sizeof row.kind, name, ::strnlen(name, sizeof row.name));
  return std::memcmp(wanted, row.kind, sizeof wanted) == 0;
}

void fill(CountsRow& row, const char* kind, const char* name) noexcept {
  std::memset(row.kind, ' ', sizeof row.kind + sizeof row.name);
  std::memcpy(row.kind, kind, ::strnlen(kind, sizeof row.kind - 1));
  std::memcpy(row.name, name, ::strnlen(name, sizeof row.name));
  row.end = '\n';
  for (std::size_t word = std::size(row.words); word-- > 0;)
    row.words[word].store(word % 2 == 0 ? kZeros : kBlanks, std::memory_order_release);
}

std::atomic<CountsRow*> mapped{nullptr};

}  // namespace

void CountsRow::add(Column column) noexcept {
  std::atomic<std::uint64_t>& word = words[column];
  std::uint64_t digits = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(digits, next(digits), std::memory_order_relaxed)) {
  }
}

CountsRow* counts_row(const char* kind, const char* name) noexcept {
  const LockedFile file;
  if (!file.is_open()) return nullptr;
  CountsRow* rows = mapped.load(std::memory_order_acquire);
  if (rows == nullptr) {
    rows = file.map();
    if (rows == nullptr) return nullptr;
    mapped.store(rows, std::memory_order_release);  // under the lock
  }
  for (std::size_t row = 0; row < kRows; ++row) {
    if (rows[row].words[0].load(std::memory_order_acquire) == 0) fill(rows[row], kind, name);
    if (is_named(rows[row], kind, name)) return &rows[row];
  }
  return nullptr;
}

}  // namespace quern::drop_in
