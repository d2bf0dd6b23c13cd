// SPDX-License-Identifier: Apache-2.0
// Precompiled: the headers of the commands take several times as long to read as the commands themselves. (No
// include guard: GCC warns of it in a file that is compiled by itself, and nothing includes it.)

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <quern/quern.hpp>
