// SPDX-License-Identifier: Apache-2.0
// Precompiled header for tests of the whole library. (No include guard: see src/base/pch/common.hpp.)

#include <doctest/doctest.h>

#include <quern/quern.hpp>
