// SPDX-License-Identifier: Apache-2.0
// The size of a store's entries, and the removal of the least recently used.
//
// The file `usage` holds for each of the 256 folders the bytes of its entries, as 64-bit numbers, and behind
// them where the next removal begins. Writers add to them; a process that is killed between publishing and
// adding leaves them too small. Where a folder is looked through, its number is set right.
#pragma once

#include <cstdint>
#include <string>

#include "cache/store_folder.hpp"

namespace quern::cache {

inline constexpr unsigned kFolderCount = 256;
std::string folder_name(unsigned index);

/// An entry with `bytes` bytes was written to folder `index` of `layout` (the open folder `v1`). Removes the
/// least recently used entries if all take more than `max_bytes` now: of a part of the folders that holds
/// enough entries to choose from, so that each writer of a full store spends a little time. Returns
/// how many entries it removed.
std::size_t note_written(const File& layout, unsigned index, std::uint64_t bytes, std::uint64_t max_bytes);

/// Removes what killed writers left in a folder of entries an hour ago or earlier.
void remove_stale(const File& folder);

/// Looks through all folders, sets the numbers right, and removes what is beyond `max_bytes`.
std::size_t trim(const File& layout, std::uint64_t max_bytes);

}  // namespace quern::cache
