// SPDX-License-Identifier: Apache-2.0
// component: compile
// For kernels only: everything that quern offers on the device side. Found by NVRTC without -I.
#pragma once

#include <quern/cuda/array.cuh>
#include <quern/cuda/constant.cuh>
#include <quern/cuda/grid.cuh>
#include <quern/cuda/local.cuh>
#include <quern/cuda/roc.cuh>
#include <quern/cuda/shared.cuh>
#include <quern/cuda/sync.cuh>
