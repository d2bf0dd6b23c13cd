// SPDX-License-Identifier: Apache-2.0
// Facts that one process found out about NVRTC and its headers, for later ones: planning a compilation then
// needs no open NVRTC, which costs 6 to 9 ms. The facts hold the state of every file and folder on which the
// search depended; where one of them has changed, the search is made again.
#pragma once

#include <optional>

#include "cache/disk_store.hpp"
#include "compile/toolkit/search_locations.hpp"
#include "compile/toolkit/toolkit.hpp"

namespace quern::compile {

/// The toolkit that find_toolkit(surroundings(environment)) would find now, as far as `store` knows; its
/// `nvrtc` and its candidates are left empty. Returns nothing if they are not certain.
std::optional<Toolkit> recall_toolkit(cache::DiskStore& store, const SearchEnvironment& environment);

/// Keeps what find_toolkit(around) has found; `around` are surroundings(environment). Keeps nothing
/// where a later process could not tell that something has changed: headers that do not lie beside NVRTC,
/// files changed a moment ago.
void remember_toolkit(cache::DiskStore& store, const SearchEnvironment& environment,
                      const SearchInputs& around, const Toolkit& toolkit);

}  // namespace quern::compile
