// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace quern::cpu::engine {

class Arena;

/// Creates a memory file (memfd) of that size, sealed against changes of the size, or returns -1. It has no
/// name in any folder, and exists until the last descriptor and the last mapping in any process are gone.
/// `device` is stored for processes that import the file.
int make_memory_file(std::uint64_t bytes, std::uint32_t device) noexcept;

struct MemoryFile {
  std::uint64_t bytes = 0;  ///< 0: make_memory_file() did not create the file, here or in another process
  std::uint32_t device = 0;
};
MemoryFile examine_memory_file(int descriptor) noexcept;

/// Memory without an address. It can be mapped at several addresses and in several processes. Immutable.
class Backing {
 public:
  /// Counts against the arena's total. Null if there is not enough memory.
  static std::shared_ptr<Backing> make(Arena& arena, std::uint32_t device, std::uint64_t bytes);
  /// Adopts the memory of another process and takes over the descriptor. If make_memory_file() did not create
  /// the file, closes the descriptor and returns null.
  static std::shared_ptr<Backing> adopt(int descriptor);
  ~Backing();
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;

  int descriptor() const noexcept { return descriptor_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// The device, as numbered by the process that created the memory.
  std::uint32_t device() const noexcept { return device_; }

 private:
  Backing(int descriptor, const MemoryFile& file, Arena* charged)
      : descriptor_(descriptor), bytes_(file.bytes), device_(file.device), charged_(charged) {}

  const int descriptor_;
  const std::uint64_t bytes_;
  const std::uint32_t device_;
  Arena* const charged_;  ///< null: the memory belongs to another process
};

/// Addresses of the window for mappings. The last reference releases them.
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
/// Returns false if the system refuses.
bool protect(std::byte* base, std::uint64_t bytes, Access access) noexcept;

/// Pages of a backing, mapped at addresses of a reservation. Keeps both alive. After its lifetime, the
/// addresses are inaccessible again.
class MappedPages {
 public:
  /// Null if the system refuses. Offsets and size must be page-aligned and within the reservation and the
  /// backing.
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
