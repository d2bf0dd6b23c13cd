// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace quern::compile {

/// Objects that code of the library makes from now on and leaves to exit() to destroy live until the
/// process's end. NVRTC makes some in its first compilations; exit() would destroy these before any handler
/// of ours could wait for a compilation that another thread is in. `handle` is what dlopen() gave, of a
/// library that is never unloaded. Does nothing where the library is of an unknown form.
void keep_static_objects(void* handle) noexcept;

}  // namespace quern::compile
