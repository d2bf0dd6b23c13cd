// SPDX-License-Identifier: Apache-2.0
// room: base
#pragma once

/// Marks what libquern.so offers; everything else in the library is hidden.
#if defined(__GNUC__) || defined(__clang__)
#define QUERN_API __attribute__((visibility("default")))
#else
#define QUERN_API
#endif
