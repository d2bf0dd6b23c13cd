// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Disables sanitizers in a function. Functions that it calls, and that are not inlined, are instrumented as
/// before.
#ifdef __clang__
#define QUERN_UNINSTRUMENTED \
  __attribute__((disable_sanitizer_instrumentation, no_sanitize("address", "thread", "undefined")))
#else
#define QUERN_UNINSTRUMENTED __attribute__((no_sanitize("address", "thread", "undefined")))
#endif
