// SPDX-License-Identifier: Apache-2.0
// The compiler that all sessions of the process use.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "compile/compiler.hpp"

namespace quern::compile {

/// A service that a compiler asks before it compiles: a name for its settings, and a function that makes it.
struct RemoteChoice {
  std::string name;  ///< empty if there is none
  std::function<std::shared_ptr<RemoteCompiler>()> make;
};

/// The process's compiler for this environment, made at the first request. It lives as long as the process:
/// what a session compiled stays compiled when the session is closed. All such compilers have one cache of
/// images. A process whose environment changes many times gets compilers of its callers' own for the later
/// ones. A compiler that found no NVRTC is not given again, so that NVRTC may be installed meanwhile. Safe at
/// exit and in forked children. Thread-safe.
/// Compilers for different servers are different ones.
std::shared_ptr<Compiler> shared_compiler(const SearchEnvironment& environment = search_environment(),
                                          const RemoteChoice& remote = {});

/// The cache of these compilers. Its counters are zeros in a child that was forked while another thread
/// compiled.
cache::CacheStats shared_cache_stats();
void set_shared_cache_bytes(std::uint64_t max_bytes);
void clear_shared_cache();
/// The requests of the whole process to these compilers.
CompileStats shared_compile_stats();

}  // namespace quern::compile
