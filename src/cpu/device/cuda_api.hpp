// SPDX-License-Identifier: Apache-2.0
// cuda.h, its functions visible: those that this component defines are exported by the stand-alone
// libcuda.so.1 (version scripts hide them in the plug-in). Every file here that defines cu* functions
// includes this first.
#pragma once

#pragma GCC visibility push(default)
#include "driver/all_versions.hpp"
#pragma GCC visibility pop
