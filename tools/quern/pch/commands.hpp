// SPDX-License-Identifier: Apache-2.0
// Precompiled header: parsing the headers of the commands takes several times as long as the commands
// themselves. (No include guard: GCC warns about one in a file that is compiled by itself, and nothing
// includes it.)

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <quern/quern.hpp>
