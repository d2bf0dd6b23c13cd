// SPDX-License-Identifier: Apache-2.0
// PTX out of the containers that CUDA's tools make: fat binaries, host objects and archives of them.
//
// Sizes in them are compared with the size of what contains them before anything is read there. A file has a
// size. The driver's functions for images in memory pass none: the size in the fat binary's own header is
// trusted as far as the process has memory at these addresses that it may read.
//
// A fat binary is a header { u32 0xBA55ED50, u16 version, u16 header bytes, u64 bytes behind the header } and
// entries. An entry is a header { u16 kind, u16, u32 header bytes, u64 payload bytes, u32 compressed bytes,
// u32, u16 minor, u16 major, u32 architecture, u64, u64 flags, u64, u64 decompressed bytes } and its payload.
// Programs refer to a fat binary by a wrapper { u32 0x466243B1, u32 version, u64 address, u64 }. Host objects
// have fat binaries in their sections .nv_fatbin and __nv_relfatbin, one behind the other. Seen in what
// nvcc 13.0 and 12 make; the numbers are those of other public readers of the format (LLVM, ZLUDA).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cpu/device/module/read_ptx.hpp"

namespace quern::cpu::device {

/// A PTX text, and where it comes from, for messages.
struct NamedPtx {
  std::string name;
  std::string text;
};

/// The kinds of containers, by their first bytes.
enum class Container : std::uint8_t { none, fat_binary, wrapper, elf, archive };
/// `bytes` may be shorter than a magic number.
Container container_of(std::string_view bytes) noexcept;

/// The fat binary at the beginning of `bytes`, with the size that its header says; empty if it is longer.
std::string_view first_fat_binary(std::string_view bytes) noexcept;
/// The fat binary at an address; empty if the memory of the size that its header says cannot be read.
std::string_view fat_binary_at(const void* image);
/// The same through a wrapper.
std::string_view wrapped_fat_binary(const void* wrapper);

/// The PTX of fat binaries that lie one behind the other: of each the newest architecture that runs here. A
/// Refusal if one of them has none, or is damaged. Any bytes are accepted.
std::variant<std::vector<NamedPtx>, Refusal> ptx_of_fat_binaries(std::string_view bytes,
                                                                 const std::string& name);
/// The same for a host object (ELF, 64 bits). A Refusal if it has no fat binary.
std::variant<std::vector<NamedPtx>, Refusal> ptx_of_object(std::string_view bytes, const std::string& name);

/// A file in an archive.
struct Member {
  std::string name;
  std::string_view bytes;
};
/// The members of an archive of `ar`, less its tables.
std::variant<std::vector<Member>, Refusal> members_of_archive(std::string_view bytes,
                                                              const std::string& name);

}  // namespace quern::cpu::device
