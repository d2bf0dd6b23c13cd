// SPDX-License-Identifier: Apache-2.0
// component: compile
// CUDA's cooperative groups, without the parts of the standard library that they take along unless told not
// to: a kernel that only waits for its grid compiles twenty times as fast.
#pragma once

#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>
