// SPDX-License-Identifier: Apache-2.0
// component: base
#pragma once

/// Marks the symbols that libquern.so exports; all others are hidden.
#if defined(__GNUC__) || defined(__clang__)
#define QUERN_API __attribute__((visibility("default")))
#else
#define QUERN_API
#endif
