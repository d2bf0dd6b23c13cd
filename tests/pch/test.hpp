// SPDX-License-Identifier: Apache-2.0
// Precompiled header for test programs with several files. (No include guard: see src/base/pch/common.hpp.)

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
