// SPDX-License-Identifier: Apache-2.0
// Precompiled for every component of more than a few files: the standard library and fmt take longer to read
// than most files to compile. Files still include what they use. (No include guard: GCC warns of it in a file
// that is compiled by itself, and nothing includes it.)

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
