// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace quern::cpu::engine {

class Arena;

/// A file in memory (memfd) of that size, sealed against changes of it, or -1. It has no name in any folder,
/// and ends with the last descriptor and the last mapping of all processes. `device` is a note for those that
/// import it.
int make_memory_file(std::uint64_t bytes, std::uint32_t device) noexcept;

struct MemoryFile {
  std::uint64_t bytes = 0;  ///< 0: make_memory_file() did not make it, here or in another process
  std::uint32_t device = 0;
};
MemoryFile examine_memory_file(int descriptor) noexcept;

/// Memory without addresses. It can be mapped at several addresses and in several processes. Immutable.
class Backing {
 public:
  /// Counts against the arena's total. Null: out of memory.
  static std::shared_ptr<Backing> make(Arena& arena, std::uint32_t device, std::uint64_t bytes);
  /// Of another process; takes over the descriptor. Null, and the descriptor is closed, if make_memory_file()
  /// did not make it.
  static std::shared_ptr<Backing> adopt(int descriptor);
  ~Backing();
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;

  int descriptor() const noexcept { return descriptor_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// As its maker numbers the devices.
  std::uint32_t device() const noexcept { return device_; }

 private:
  Backing(int descriptor, const MemoryFile& file, Arena* charged)
      : descriptor_(descriptor), bytes_(file.bytes), device_(file.device), charged_(charged) {}

  const int descriptor_;
  const std::uint64_t bytes_;
  const std::uint32_t device_;
  Arena* const charged_;  ///< null: another process's memory
};

/// Addresses of the window for mappings. Released with the last reference.
class Reservation {
 public:
  Reservation(Arena& arena, std::byte* base, std::uint64_t bytes)
      : base_(base), bytes_(bytes), arena_(&arena) {}
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  std::byte* base() const noexcept { return base_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* const base_;
  const std::uint64_t bytes_;
  Arena* const arena_;
};

/// How pages may be accessed.
enum class Access : std::uint8_t { none, read, read_write };
/// False if the system refuses.
bool protect(std::byte* base, std::uint64_t bytes, Access access) noexcept;

/// Pages of a backing at addresses of a reservation; both live as long. The addresses are inaccessible again
/// afterwards.
class MappedPages {
 public:
  /// Null: the system refuses. All but the access is page-aligned and within the two.
  static std::shared_ptr<MappedPages> make(std::shared_ptr<Reservation> reservation, std::uint64_t at,
                                           std::uint64_t bytes, std::shared_ptr<Backing> backing,
                                           std::uint64_t backing_offset, Access access);
  ~MappedPages();
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;

 private:
  MappedPages(std::shared_ptr<Reservation> reservation, std::byte* base, std::uint64_t bytes,
              std::shared_ptr<Backing> backing)
      : reservation_(std::move(reservation)), base_(base), bytes_(bytes), backing_(std::move(backing)) {}

  const std::shared_ptr<Reservation> reservation_;
  std::byte* const base_;
  const std::uint64_t bytes_;
  const std::shared_ptr<Backing> backing_;
};

}  // namespace quern::cpu::engine
