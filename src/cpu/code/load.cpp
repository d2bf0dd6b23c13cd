// SPDX-License-Identifier: Apache-2.0
#include "cpu/code/load.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace quern::cpu {
namespace {

/// Memory that is first writable and then executable, but never both. All of it gets the same protection, so
/// that the system can merge adjacent mappings: their number is limited (vm.max_map_count), and each block
/// shape has code.
class Mapping {
 public:
  explicit Mapping(std::size_t bytes) : bytes_(bytes) {
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) base_ = static_cast<std::byte*>(memory);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (base_ != nullptr) munmap(base_, bytes_);
  }
  /// Null, with errno set, if the system refuses the mapping.
  std::byte* base() const noexcept { return base_; }
  /// Returns false, with errno set, if the system call fails.
  bool seal() noexcept { return mprotect(base_, bytes_, PROT_READ | PROT_EXEC) == 0; }

 private:
  std::size_t bytes_;
  std::byte* base_ = nullptr;
};

Diagnostic no_memory() {
  return Diagnostic{.code = "out-of-memory",
                    .message = "the machine code of a kernel could not be mapped into memory: " +
                               std::string(std::strerror(errno)),
                    .hint =
                        "raise the number of mappings (sysctl vm.max_map_count) or the address space "
                        "(ulimit -v), or use fewer block shapes, since each one has code of its own"};
}

Diagnostic no_helper(const std::string& name) {
  return Diagnostic{.code = "code-image",
                    .message = "loading the machine code of a kernel: it calls '" + name +
                               "', which this version of quern does not have",
                    .hint = "This is a defect of the CPU device; please report it with the kernel's PTX."};
}

/// Replaces the word at `at`, an offset from `base`, by the address.
void make_address(std::byte* base, std::uint64_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, base + at, sizeof word);
  word += reinterpret_cast<std::uintptr_t>(base);
  std::memcpy(base + at, &word, sizeof word);
}

}  // namespace

Expected<LoadedImage> map_code(const LinkedCode& code, std::span<const Helper> helpers) {
  std::vector<void*> addresses;
  for (const std::string& name : code.helpers) {
    const auto found = std::find_if(helpers.begin(), helpers.end(),
                                    [&](const Helper& helper) { return helper.name == name; });
    if (found == helpers.end()) return no_helper(name);
    addresses.push_back(found->address);
  }
  const auto mapping = std::make_shared<Mapping>(code.bytes.size() + addresses.size() * sizeof(void*));
  std::byte* const base = mapping->base();
  if (base == nullptr) return no_memory();
  std::memcpy(base, code.bytes.data(), code.bytes.size());
  if (!addresses.empty())
    std::memcpy(base + code.bytes.size(), addresses.data(), addresses.size() * sizeof(void*));
  for (const std::uint64_t at : code.addresses) make_address(base, at);
  if (!mapping->seal()) return no_memory();
  return LoadedImage{base + code.entry, base, base + code.text_bytes, mapping};
}

}  // namespace quern::cpu
