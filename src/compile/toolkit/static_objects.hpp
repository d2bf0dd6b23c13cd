// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace quern::compile {

/// Static objects that the library creates from now on live until the process's end, although they are
/// registered for destruction by exit(). NVRTC creates some in its first compilations; exit() would destroy
/// these before a handler of ours could wait for a compilation on another thread. `handle` is the result of
/// dlopen(), for a library that is never unloaded. Does nothing if the library's format is unknown.
void keep_static_objects(void* handle) noexcept;

}  // namespace quern::compile
