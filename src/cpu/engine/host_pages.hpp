// SPDX-License-Identifier: Apache-2.0
// The pages of the host's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace quern::cpu::engine {

enum class HostAccess : std::uint8_t { none, read, read_write };

/// The accesses that this process has to each of [address, address + bytes). `none` also for memory that is
/// not mapped, and for a mapping of a file beyond the end of the file, where an access raises SIGBUS. Nothing
/// if that cannot be found out: without /proc. Writes to no page, and reads from the last page of each
/// mapping of a file only. Thread-safe; the host may map and unmap memory at any time, so the answer may be
/// outdated.
std::optional<HostAccess> host_access(const void* address, std::size_t bytes);

}  // namespace quern::cpu::engine
