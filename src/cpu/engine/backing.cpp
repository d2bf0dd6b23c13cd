// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/backing.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "base/held_signal.hpp"
#include "cpu/engine/arena.hpp"
#include "cpu/engine/window.hpp"

namespace quern::cpu::engine {
namespace {

constexpr char kName[] = "quern-device-";
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

int protection(Access access) noexcept {
  switch (access) {
    case Access::none:
      return PROT_NONE;
    case Access::read:
      return PROT_READ;
    case Access::read_write:
      return PROT_READ | PROT_WRITE;
  }
  return PROT_NONE;
}

}  // namespace

int make_memory_file(std::uint64_t bytes, std::uint32_t device) noexcept {
  char name[sizeof kName + 16];
  std::snprintf(name, sizeof name, "%s%u", kName, device);
  const int descriptor = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return -1;
  const base::HeldSignal quiet(SIGXFSZ);
  if (::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 &&
      ::fcntl(descriptor, F_ADD_SEALS, kSeals) == 0)
    return descriptor;
  ::close(descriptor);
  return -1;
}

MemoryFile examine_memory_file(int descriptor) noexcept {
  // /proc shows a memfd as "/memfd:NAME (deleted)".
  constexpr std::string_view kShown = "/memfd:";
  char link[64], shown[128];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ::ssize_t length = ::readlink(link, shown, sizeof shown);
  std::string_view name(shown, length > 0 ? static_cast<std::size_t>(length) : 0);
  MemoryFile file;
  if (!name.starts_with(kShown)) return {};
  name.remove_prefix(kShown.size());
  if (!name.starts_with(kName)) return {};
  name.remove_prefix(std::string_view(kName).size());
  if (std::from_chars(name.data(), name.data() + name.size(), file.device).ec != std::errc{}) return {};
  struct stat status{};
  if (::fcntl(descriptor, F_GET_SEALS) != kSeals || ::fstat(descriptor, &status) != 0) return {};
  file.bytes = static_cast<std::uint64_t>(status.st_size);
  return file;
}

std::shared_ptr<Backing> Backing::make(Arena& arena, std::uint32_t device, std::uint64_t bytes) {
  if (!arena.charge(bytes)) return nullptr;
  const int descriptor = make_memory_file(bytes, device);
  if (descriptor >= 0) return std::shared_ptr<Backing>(new Backing(descriptor, {bytes, device}, &arena));
  arena.discharge(bytes);
  return nullptr;
}

std::shared_ptr<Backing> Backing::adopt(int descriptor) {
  const MemoryFile file = examine_memory_file(descriptor);
  if (file.bytes != 0) return std::shared_ptr<Backing>(new Backing(descriptor, file, nullptr));
  ::close(descriptor);
  return nullptr;
}

Backing::~Backing() {
  ::close(descriptor_);
  if (charged_ != nullptr) charged_->discharge(bytes_);
}

Reservation::~Reservation() { arena_->release(base_); }

bool protect(std::byte* base, std::uint64_t bytes, Access access) noexcept {
  return ::mprotect(base, bytes, protection(access)) == 0;
}

std::shared_ptr<MappedPages> MappedPages::make(std::shared_ptr<Reservation> reservation, std::uint64_t at,
                                               std::uint64_t bytes, std::shared_ptr<Backing> backing,
                                               std::uint64_t backing_offset, Access access) {
  std::byte* const base = reservation->base() + at;
  const int descriptor = backing->descriptor();
  std::shared_ptr<MappedPages> pages(
      new MappedPages(std::move(reservation), base, bytes, std::move(backing)));
  void* const got = ::mmap(base, bytes, protection(access), MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                           descriptor, static_cast<off_t>(backing_offset));
  return got == MAP_FAILED ? nullptr : pages;
}

MappedPages::~MappedPages() { decommit(base_, bytes_); }

}  // namespace quern::cpu::engine
