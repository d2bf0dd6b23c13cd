// SPDX-License-Identifier: Apache-2.0
// The C ABI: saved modules, work in the background, compiling without a device, the compile cache.
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>

#include "session/c_abi/handles.hpp"

namespace {

using namespace quern;
using namespace quern::session::c_abi;

/// All of the bytes or none.
void give_bytes(std::span<const std::byte> given, void* buffer, std::size_t bytes, std::size_t* needed) {
  require(buffer != nullptr || needed != nullptr,
          "a buffer for bytes or a pointer for their number is needed");
  if (needed != nullptr) *needed = given.size();
  if (buffer == nullptr) return;
  if (bytes < given.size())
    throw Error(ErrorCode::usage, "the buffer has " + std::to_string(bytes) + " bytes, and " +
                                      std::to_string(given.size()) + " are needed");
  if (!given.empty()) std::memcpy(buffer, given.data(), given.size());
}

Dim3 block_of(const uint32_t* block) {
  require(block != nullptr, "preparing a kernel needs the three extents of a block");
  return {block[0], block[1], block[2]};
}

template <class Work>
std::uint64_t insert_pending(Work work) {
  return insert(std::make_shared<PendingObject>(std::move(work)));
}

const CompiledKernel& kernel_at(const CompiledSource& compiled, std::size_t index) {
  if (index >= compiled.kernels.size()) refuse_index("kernel", index, compiled.kernels.size());
  return compiled.kernels[index];
}

CompileRequest request_of(const QuernSource& source, const QuernCompileOptions* options) {
  require(source.text != nullptr, "quern_compile_source needs source text");
  CompileRequest request;
  request.source = source.text;
  request.language = language_of(source.language);
  request.load = load_options_of(source);
  if (options == nullptr) return request;
  const QuernCompileOptions given = read_struct(options);
  if (given.compute_capability != 0) request.compute_capability = given.compute_capability;
  if (given.machine != 0) request.machine = given.machine;
  request.driver_version = given.driver_version;
  if (given.kernel != nullptr) request.kernel = given.kernel;
  if (given.types != nullptr) request.signature = given.types;
  return request;
}

QuernCompileStats stats_of(const CompileStats& stats) {
  return {0, 0, stats.translations, stats.nvrtc_runs, stats.cache_hits, stats.disk_hits};
}

QuernCacheStats stats_of(const CacheTierStats& tier) {
  QuernCacheStats stats{};
  stats.hits = tier.hits;
  stats.waits = tier.waits;
  stats.misses = tier.misses;
  stats.failures = tier.failures;
  stats.evictions = tier.evictions;
  stats.entry_count = tier.entry_count;
  stats.size_bytes = tier.size_bytes;
  stats.max_bytes = tier.max_bytes;
  return stats;
}

QuernCacheStats stats_of(const std::optional<DiskCacheStats>& tier) {
  if (!tier)
    throw Error(
        ErrorCode::not_found,
        "there is no compile cache on disk: QUERN_CACHE=0, or there is no folder for it; `quern doctor` "
        "says why");
  QuernCacheStats stats{};
  stats.hits = tier->hits;
  stats.misses = tier->misses;
  stats.evictions = tier->evictions;
  stats.max_bytes = tier->max_bytes;
  stats.writes = tier->writes;
  stats.failed_writes = tier->failed_writes;
  stats.damaged = tier->damaged;
  return stats;
}

const std::string& text_of(const CompiledKernel& kernel, QuernKernelText which) {
  require(which == QUERN_KERNEL_NAME || which == QUERN_KERNEL_LOWERED_NAME,
          "of a compiled kernel QUERN_KERNEL_NAME and QUERN_KERNEL_LOWERED_NAME are known");
  return which == QUERN_KERNEL_NAME ? kernel.name : kernel.lowered_name;
}

std::string text_of(const CompiledSource& compiled, QuernCompiledText which) {
  switch (which) {
    case QUERN_COMPILED_PTX:
      return compiled.ptx;
    case QUERN_COMPILED_CUDA_SOURCE:
      return compiled.cuda_source;
    case QUERN_COMPILED_LOG:
      return to_string(compiled.log);
  }
  throw Error(ErrorCode::usage, "the text is not a value of QuernCompiledText");
}

}  // namespace

QuernStatus quern_module_save(QuernModule module, const char* path) {
  return guarded([&] {
    require(path != nullptr, "quern_module_save needs a path");
    find<Module>(module.id).save(path);
  });
}
QuernStatus quern_module_saved(QuernModule module, void* buffer, size_t bytes, size_t* needed) {
  return guarded([&] { give_bytes(find<Module>(module.id).saved(), buffer, bytes, needed); });
}
QuernStatus quern_load_saved(QuernSession session, const char* path, QuernModule* module) {
  return guarded([&] {
    require(path != nullptr && module != nullptr,
            "quern_load_saved needs a path and a pointer for the module");
    module->id = insert(session_of(session).load_saved(std::filesystem::path(path)));
  });
}
QuernStatus quern_load_saved_bytes(QuernSession session, const void* data, size_t bytes,
                                   QuernModule* module) {
  return guarded([&] {
    require((data != nullptr || bytes == 0) && module != nullptr,
            "quern_load_saved_bytes needs bytes and a pointer for the module");
    const std::span<const std::byte> given(static_cast<const std::byte*>(data), bytes);
    module->id = insert(session_of(session).load_saved(given));
  });
}

QuernStatus quern_load_async(QuernSession session, const QuernSource* source, QuernPending* pending) {
  return guarded([&] {
    require(source != nullptr && pending != nullptr,
            "quern_load_async needs a source and a pointer for the handle");
    const QuernSource given = read_struct(source);
    require(given.text != nullptr, "quern_load_async needs source text");
    const Session in = session_of(session);
    pending->id =
        insert_pending(in.load_async(language_of(given.language), given.text, load_options_of(given)));
  });
}
QuernStatus quern_kernel_prepare(QuernKernel kernel, const uint32_t block[3], const char* types) {
  return guarded([&] {
    const Kernel code = find<Kernel>(kernel.id);
    if (types == nullptr)
      code.prepare(block_of(block));
    else
      code.prepare(block_of(block), types);
  });
}
QuernStatus quern_kernel_prepare_async(QuernKernel kernel, const uint32_t block[3], const char* types,
                                       QuernPending* pending) {
  return guarded([&] {
    require(pending != nullptr, "quern_kernel_prepare_async needs a pointer for the handle");
    const Kernel code = find<Kernel>(kernel.id);
    const Dim3 shape = block_of(block);
    pending->id =
        insert_pending(types == nullptr ? code.prepare_async(shape) : code.prepare_async(shape, types));
  });
}

QuernStatus quern_pending_wait(QuernPending pending, uint64_t timeout_ns, int32_t* ended) {
  return guarded([&] {
    const PendingHandle handle = find<PendingHandle>(pending.id);
    const Pending& work = handle->pending();
    bool has_ended = true;
    if (timeout_ns == std::numeric_limits<uint64_t>::max())
      work.wait();
    else
      has_ended = timeout_ns == 0 ? work.ready() : work.wait_for(nanoseconds_of(timeout_ns));
    if (ended != nullptr) *ended = has_ended ? 1 : 0;
  });
}
QuernStatus quern_pending_result(QuernPending pending, QuernModule* module) {
  return guarded([&] {
    const PendingHandle handle = find<PendingHandle>(pending.id);
    require(handle->module() == nullptr || module != nullptr,
            "quern_pending_result needs a pointer for the module that was loaded");
    if (handle->module() != nullptr)
      module->id = insert(handle->module()->get());
    else
      handle->preparation()->get();
  });
}
QuernStatus quern_pending_cancel(QuernPending pending) {
  return guarded([&] { find<PendingHandle>(pending.id)->pending().cancel(); });
}
QuernStatus quern_pending_detach(QuernPending pending) {
  return guarded([&] {
    const PendingHandle handle = find<PendingHandle>(pending.id);
    handle->keep_on();
    static_cast<void>(quern_release(pending.id));
  });
}

QuernStatus quern_compile_source(const QuernSource* source, const QuernCompileOptions* options,
                                 QuernCompiled* compiled) {
  return guarded([&] {
    require(source != nullptr && compiled != nullptr,
            "quern_compile_source needs a source and a pointer for the result");
    compiled->id = insert(CompiledHandle(
        std::make_shared<const CompiledSource>(compile_source(request_of(read_struct(source), options)))));
  });
}
QuernStatus quern_compiled_text(QuernCompiled compiled, QuernCompiledText which, char* buffer, size_t bytes,
                                size_t* needed) {
  return guarded(
      [&] { give_text(text_of(*find<CompiledHandle>(compiled.id), which), buffer, bytes, needed); });
}
QuernStatus quern_compiled_machine_code(QuernCompiled compiled, void* buffer, size_t bytes, size_t* needed) {
  return guarded([&] { give_bytes(find<CompiledHandle>(compiled.id)->machine_code, buffer, bytes, needed); });
}
QuernStatus quern_compiled_kernel_count(QuernCompiled compiled, size_t* count) {
  return guarded([&] {
    require(count != nullptr, "quern_compiled_kernel_count needs a pointer for the count");
    *count = find<CompiledHandle>(compiled.id)->kernels.size();
  });
}
QuernStatus quern_compiled_kernel_text(QuernCompiled compiled, size_t index, QuernKernelText which,
                                       char* buffer, size_t bytes, size_t* needed) {
  return guarded([&] {
    const CompiledHandle source = find<CompiledHandle>(compiled.id);
    give_text(text_of(kernel_at(*source, index), which), buffer, bytes, needed);
  });
}
QuernStatus quern_compiled_parameter_count(QuernCompiled compiled, size_t kernel, size_t* count) {
  return guarded([&] {
    require(count != nullptr, "quern_compiled_parameter_count needs a pointer for the count");
    const CompiledHandle source = find<CompiledHandle>(compiled.id);
    *count = kernel_at(*source, kernel).parameters.size();
  });
}
QuernStatus quern_compiled_parameter(QuernCompiled compiled, size_t kernel, size_t index,
                                     QuernParameter* parameter) {
  return guarded([&] {
    const CompiledHandle source = find<CompiledHandle>(compiled.id);
    const std::vector<Parameter>& all = kernel_at(*source, kernel).parameters;
    if (index >= all.size()) refuse_index("parameter", index, all.size());
    const Parameter& known = all[index];  // the handle holds it
    write_struct(parameter, QuernParameter{0, known.pointer ? 1 : 0, known.offset, known.size, known.align,
                                           known.name.c_str(), known.type.c_str()});
  });
}

QuernStatus quern_session_compile_stats(QuernSession session, QuernCompileStats* stats) {
  return guarded([&] { write_struct(stats, stats_of(session_of(session).compile_stats())); });
}
QuernStatus quern_compile_stats(QuernCompileStats* stats) {
  return guarded([&] { write_struct(stats, stats_of(compile_cache_stats().compiles)); });
}
QuernStatus quern_compile_cache_stats(QuernCacheTier tier, QuernCacheStats* stats) {
  return guarded([&] {
    require(tier == QUERN_CACHE_MEMORY || tier == QUERN_CACHE_DISK,
            "the tier is not a value of QuernCacheTier");
    const CompileCacheStats all = compile_cache_stats();
    write_struct(stats, tier == QUERN_CACHE_MEMORY ? stats_of(all.memory) : stats_of(all.disk));
  });
}
QuernStatus quern_set_compile_cache_bytes(uint64_t max_bytes) {
  return guarded([&] { set_compile_cache_bytes(max_bytes); });
}
QuernStatus quern_clear_compile_cache(void) {
  return guarded([] { clear_compile_cache(); });
}
