// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the program if `same` is false.
#define EXPECT(same)                                                           \
  do {                                                                         \
    if (!(same)) {                                                             \
      std::fprintf(stderr, "%s:%d: differs: %s\n", __FILE__, __LINE__, #same); \
      std::_Exit(1);                                                           \
    }                                                                          \
  } while (false)
