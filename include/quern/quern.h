/* SPDX-License-Identifier: Apache-2.0 */
// component: session
/*
 * quern for other languages: a C ABI. Handles are opaque numbers, never addresses; 0 is no handle, and a
 * handle that was released or is invalid is rejected. Every function returns a status and writes its results
 * only if that is QUERN_OK; otherwise quern_last_error() says what was attempted and what to do. All
 * functions may be called from any thread. Shapes count elements, strides and sizes bytes.
 *
 * Structs that begin with struct_bytes may grow at their end; the caller sets it to his own sizeof. A library
 * that is newer than the caller reads missing fields as 0 and writes no more than that many bytes. A library
 * that is older rejects fields that it does not know with QUERN_UNSUPPORTED, unless they are 0. Other structs
 * never change.
 *
 * Texts are written to a buffer of the caller, cut to `bytes` with a NUL; `needed` (may be null) is set to
 * the bytes of the whole text. Native handles (CUcontext, CUstream, ...) are passed as void*. */
#ifndef QUERN_H
#define QUERN_H

#include <stddef.h>
#include <stdint.h>

#include "quern/c_types.h"

#if defined(__GNUC__)
#define QUERN_C_API __attribute__((visibility("default")))
#else
#define QUERN_C_API
#endif

/* Raised when functions or fields are added; none is ever changed or removed. 2: quern_load. 3: allocators,
 * pinned memory, events, copies between arrays, quern_load_file, and queries of the device and of a kernel's
 * block. 4: records, strides and memory order, views, host arrays as arguments, page-locked and managed
 * memory, native handles, external events, the special streams, deferred cleanup, pools, memory statistics,
 * attributes of devices and kernels, arrays that are copied when needed. 5: variables of modules, headers
 * given as texts, streams with a priority, prefetching and advice, linking, quern_last_fault. 6: time limits,
 * cancelling, handlers of messages, of the output of kernels and of progress. 7: saved modules, preparing
 * kernels, work in the background, compiling without a device, statistics and bound of the compile cache. */
#define QUERN_ABI_VERSION 7u

#ifdef __cplusplus
extern "C" {
#endif

QUERN_C_API uint32_t quern_abi_version(void);
/* "0.1.0"; valid for ever. */
QUERN_C_API const char* quern_version(void);
/* Writes this thread's latest error to `buffer`, cut to `bytes` with a NUL; returns the bytes of the whole
 * text. */
QUERN_C_API size_t quern_last_error(char* buffer, size_t bytes);
/* The CUresult of that error; 0 if no call of the driver failed. */
QUERN_C_API int32_t quern_last_driver_result(void);
/* The launch, threads and line of the fault that caused this thread's latest error, a QUERN_DEVICE_FAULT on
 * the CPU device; any call may have returned it. QUERN_NOT_FOUND if no fault is known (on a GPU none is); the
 * latest error then remains. */
QUERN_C_API QuernStatus quern_last_fault(QuernFault* fault);

/* From now on `handler` receives the messages that quern would write to stderr, in the whole process; null
 * restores the default, stderr. It is called from any thread, from several at once, and from inside quern's
 * functions: it must not call quern or the driver and must not throw. When this function returns, no other
 * thread is inside the former handler any more, and the object that its `user` points to may be destroyed; so
 * the caller must not hold a lock that the former handler takes. */
QUERN_C_API QuernStatus quern_set_log_handler(QuernLogHandler handler, void* user);
/* The same for the output of printf in kernels on the CPU device, which is written to stdout by default: one
 * text at a time, from threads that run the kernel, all texts before the stream's synchronisation ends. On a
 * GPU the driver itself writes to stdout, and no handler receives that; a message in the log says so. */
QUERN_C_API QuernStatus quern_set_printf_handler(QuernPrintfHandler handler, void* user);

/* The devices that sessions can be opened on, CUDA devices first. QUERN_NOT_FOUND for an index too large. */
QUERN_C_API QuernStatus quern_device_count(size_t* count);
QUERN_C_API QuernStatus quern_device_info(size_t index, QuernDeviceInfo* info);

/* "auto", "cpu", "cuda:0"; null: QUERN_DEVICE, else "auto". */
QUERN_C_API QuernStatus quern_session_open(const char* device, QuernSession* session);
/* Like quern_session_open(), in the context that is current on this thread: the program keeps it, and it must
 * outlive all objects made from the session. QUERN_USAGE if none is current. */
QUERN_C_API QuernStatus quern_session_adopt(const char* device, QuernSession* session);
/* A session in a context of its own: a kernel's fault ends only this session. Its kernels cannot take arrays
 * of other sessions and of other libraries. */
QUERN_C_API QuernStatus quern_session_open_isolated(const char* device, QuernSession* session);
/* A session with options; since version 6. QUERN_UNSUPPORTED for a time limit on a GPU. */
QUERN_C_API QuernStatus quern_session_open_with(const char* device, const QuernSessionOptions* options,
                                                QuernSession* session);
/* Waits for all work of the session's context. QUERN_CANCELLED if some of it was cancelled meanwhile. */
QUERN_C_API QuernStatus quern_session_synchronize(QuernSession session);
/* quern_stream_cancel() for every stream of the session's context, which all sessions on the device share,
 * except isolated ones. Since version 6. */
QUERN_C_API QuernStatus quern_session_cancel(QuernSession session);
QUERN_C_API QuernStatus quern_session_device(QuernSession session, QuernDeviceInfo* info);
QUERN_C_API QuernStatus quern_session_device_name(QuernSession session, char* buffer, size_t bytes,
                                                  size_t* needed);
/* Device memory, bytes; either pointer may be null. */
QUERN_C_API QuernStatus quern_session_memory(QuernSession session, size_t* free_bytes, size_t* total_bytes);
/* Sets the allocator of the context's device memory from now on; null: the driver's. The struct is copied. */
QUERN_C_API QuernStatus quern_session_set_allocator(QuernSession session, const QuernAllocator* allocator);
/* The driver's stream-ordered pool, keeping up to `keep_bytes` of freed memory; QUERN_UNSUPPORTED if the
 * device has no such pool. */
QUERN_C_API QuernStatus quern_session_use_stream_ordered_pool(QuernSession session, uint64_t keep_bytes);
/* A pool of quern's own over the driver's allocator. */
QUERN_C_API QuernStatus quern_session_use_caching_pool(QuernSession session, uint64_t most_cached_bytes);
/* From now on `handler` receives the progress of compilations, and of copies that are done on return and have
 * 16 MiB or more; null removes the handler. It belongs to the session's context: an isolated session's own,
 * or the one that all other sessions on the device share. Work that it cancels ends with QUERN_CANCELLED;
 * generation of code and finished work cannot be cancelled. It is called on threads that do the work, and
 * must not call quern or the driver. When this function returns, no other thread is inside the former handler
 * any more. */
QUERN_C_API QuernStatus quern_session_set_progress(QuernSession session, QuernProgressHandler handler,
                                                   void* user);

/* No resource is released until the end, also if memory is exhausted. Nests; ends with quern_defer_end() or
 * quern_release(). */
QUERN_C_API QuernStatus quern_defer_begin(QuernSession session, QuernDeferral* deferral);
QUERN_C_API QuernStatus quern_defer_end(QuernDeferral deferral);
/* Performs pending releases now; does nothing while cleanup is deferred. */
QUERN_C_API QuernStatus quern_session_release_pending(QuernSession session);
/* Counts and bytes of the session's context. Sessions on one device share its primary context, and with it
 * statistics, allocator and pending releases. */
QUERN_C_API QuernStatus quern_session_memory_stats(QuernSession session, QuernMemoryKind kind,
                                                   QuernMemoryStats* stats);
/* A table of the live resources; empty if there are none. */
QUERN_C_API QuernStatus quern_session_leak_report(QuernSession session, char* buffer, size_t bytes,
                                                  size_t* needed);
/* CUcontext. */
QUERN_C_API QuernStatus quern_session_context(QuernSession session, void** context);
/* The CUmemoryPool of device memory; QUERN_UNSUPPORTED if the memory comes from another source. */
QUERN_C_API QuernStatus quern_session_memory_pool(QuernSession session, void** pool);
/* The address of a function of the Driver API in this device's driver, "cuMemAlloc_v2": with it, one program
 * makes its own calls on a GPU and on the CPU device. QUERN_NOT_FOUND for names that quern does not use. */
QUERN_C_API QuernStatus quern_session_driver_function(QuernSession session, const char* name,
                                                      void** function);

QUERN_C_API QuernStatus quern_load_cuda(QuernSession session, const char* source, QuernModule* module);
QUERN_C_API QuernStatus quern_load_ptx(QuernSession session, const char* ptx, QuernModule* module);
/* `.py` is Kernel Python, `.cu` CUDA C++, `.ptx` PTX. QUERN_NOT_FOUND if the file does not exist. */
QUERN_C_API QuernStatus quern_load_file(QuernSession session, const char* path, QuernModule* module);
/* Source of any language; since version 2. A Kernel Python kernel is compiled for the types of its arguments
 * at a launch. */
QUERN_C_API QuernStatus quern_load(QuernSession session, const QuernSource* source, QuernModule* module);
/* A file with options: the source's language, text and file_name are not read. */
QUERN_C_API QuernStatus quern_load_file_with(QuernSession session, const char* path,
                                             const QuernSource* options, QuernModule* module);
/* Links several sources in CUDA C++ and PTX into one module: one source defines names that another declares
 * extern. Compiled as relocatable device code. QUERN_COMPILE if they cannot be linked. */
QUERN_C_API QuernStatus quern_link(QuernSession session, const QuernSource* const* sources, size_t count,
                                   QuernModule* module);
/* Since version 7. A compiled module as one file, written completely or not at all: it is loaded without
 * NVRTC and without the source (docs/saved-modules.md). Of Kernel Python it holds the argument types that
 * were compiled so far; QUERN_USAGE if there are none. */
QUERN_C_API QuernStatus quern_module_save(QuernModule module, const char* path);
/* The bytes of that file. `buffer` null: only `*needed` is set. QUERN_USAGE for a buffer that is too small;
 * the module may have got more code since the call that returned its size. */
QUERN_C_API QuernStatus quern_module_saved(QuernModule module, void* buffer, size_t bytes, size_t* needed);
/* Loads a file of quern_module_save(), or its bytes, which are read during the call and need not be trusted.
 * QUERN_IO for damaged bytes, QUERN_UNSUPPORTED for a format that is too new and for code of another device.
 * Requests for code that the module does not hold return QUERN_NOT_FOUND. */
QUERN_C_API QuernStatus quern_load_saved(QuernSession session, const char* path, QuernModule* module);
QUERN_C_API QuernStatus quern_load_saved_bytes(QuernSession session, const void* data, size_t bytes,
                                               QuernModule* module);
/* quern_load() on a thread of quern's; the call returns at once. At most four such threads work at once. */
QUERN_C_API QuernStatus quern_load_async(QuernSession session, const QuernSource* source,
                                         QuernPending* pending);

/* Waits for work in the background, at most `timeout_ns` nanoseconds (UINT64_MAX: until it has ended, 0: not
 * at all); `*ended` (may be null) is not 0 if it has. quern_pending_result() returns its result. A child of
 * fork() gets QUERN_DRIVER for work that its parent had in progress. */
QUERN_C_API QuernStatus quern_pending_wait(QuernPending pending, uint64_t timeout_ns, int32_t* ended);
/* Waits, and returns the status of the work, with its error's text: QUERN_CANCELLED, ... `*module` is the
 * module that quern_load_async() loaded; `module` is null for other work. Each call gives a new handle of the
 * module. */
QUERN_C_API QuernStatus quern_pending_result(QuernPending pending, QuernModule* module);
/* Work that has not begun ends at once. Work in progress ends where a handler of progress could cancel it, or
 * is completed. quern_release() does the same and releases the handle. */
QUERN_C_API QuernStatus quern_pending_cancel(QuernPending pending);
/* Releases the handle; the work continues. */
QUERN_C_API QuernStatus quern_pending_detach(QuernPending pending);

/* Since version 7. Compiles source with the process's compiler and cache. No device and no driver is needed.
 * `options` may be null. */
QUERN_C_API QuernStatus quern_compile_source(const QuernSource* source, const QuernCompileOptions* options,
                                             QuernCompiled* compiled);
QUERN_C_API QuernStatus quern_compiled_text(QuernCompiled compiled, QuernCompiledText which, char* buffer,
                                            size_t bytes, size_t* needed);
/* A cubin; 0 bytes if none was requested. `buffer` null: only `*needed` is set. QUERN_USAGE for a buffer that
 * is too small. */
QUERN_C_API QuernStatus quern_compiled_machine_code(QuernCompiled compiled, void* buffer, size_t bytes,
                                                    size_t* needed);
/* Its kernels; QUERN_NOT_FOUND for an index too large. Only the texts QUERN_KERNEL_NAME and
 * QUERN_KERNEL_LOWERED_NAME are known. A parameter's texts live as long as the handle. */
QUERN_C_API QuernStatus quern_compiled_kernel_count(QuernCompiled compiled, size_t* count);
QUERN_C_API QuernStatus quern_compiled_kernel_text(QuernCompiled compiled, size_t index,
                                                   QuernKernelText which, char* buffer, size_t bytes,
                                                   size_t* needed);
QUERN_C_API QuernStatus quern_compiled_parameter_count(QuernCompiled compiled, size_t kernel, size_t* count);
QUERN_C_API QuernStatus quern_compiled_parameter(QuernCompiled compiled, size_t kernel, size_t index,
                                                 QuernParameter* parameter);

/* Since version 7. Counts of the compilations of this session, and of the whole process. All sessions share
 * one compiler and its cache. */
QUERN_C_API QuernStatus quern_session_compile_stats(QuernSession session, QuernCompileStats* stats);
QUERN_C_API QuernStatus quern_compile_stats(QuernCompileStats* stats);
/* QUERN_NOT_FOUND for the tier on disk if there is none: QUERN_CACHE=0, or no folder for it. */
QUERN_C_API QuernStatus quern_compile_cache_stats(QuernCacheTier tier, QuernCacheStats* stats);
/* The bound of the memory tier, for all sessions; 256 MiB at first, 0 keeps nothing. */
QUERN_C_API QuernStatus quern_set_compile_cache_bytes(uint64_t max_bytes);
/* Drops the entries of the memory tier. */
QUERN_C_API QuernStatus quern_clear_compile_cache(void);

/* The same Kernel Python file with a module-level name bound to `value`, which overrides the file: a number
 * (no dimensions), or an array, which kernels read from constant memory. */
QUERN_C_API QuernStatus quern_module_bind(QuernModule module, const char* name, const QuernHostArray* value,
                                          QuernModule* bound);
/* The kernels that the module has; QUERN_NOT_FOUND for an index too large. */
QUERN_C_API QuernStatus quern_module_kernel_count(QuernModule module, size_t* count);
QUERN_C_API QuernStatus quern_module_kernel_name(QuernModule module, size_t index, char* buffer, size_t bytes,
                                                 size_t* needed);
/* The compiler's warnings. */
QUERN_C_API QuernStatus quern_module_log(QuernModule module, char* buffer, size_t bytes, size_t* needed);
/* A __device__ or __constant__ variable of the module as an array of `type`, which must have the variable's
 * size; null: bytes. The array keeps the module loaded. A template's instance that was compiled on request is
 * a module of its own, WITH VARIABLES OF ITS OWN: quern_module_global() then returns QUERN_USAGE; use
 * quern_kernel_global(). QUERN_NOT_FOUND for unknown names; the error text lists the names. */
QUERN_C_API QuernStatus quern_module_global(QuernModule module, const char* name, const QuernArrayType* type,
                                            QuernArray* array);
QUERN_C_API QuernStatus quern_kernel_global(QuernKernel kernel, const char* name, const QuernArrayType* type,
                                            QuernArray* array);
QUERN_C_API QuernStatus quern_module_global_count(QuernModule module, size_t* count);
QUERN_C_API QuernStatus quern_module_global_name(QuernModule module, size_t index, char* buffer, size_t bytes,
                                                 size_t* needed);
/* CUmodule; QUERN_UNSUPPORTED for Kernel Python, whose kernels are modules of their own. */
QUERN_C_API QuernStatus quern_module_native(QuernModule module, void** cu_module);

/* A null or empty `name`: the module's only kernel. */
QUERN_C_API QuernStatus quern_kernel(QuernModule module, const char* name, QuernKernel* kernel);
/* Needs no heap memory after a kernel's first launch, unless host arrays are copied or there are more than 48
 * arguments. */
QUERN_C_API QuernStatus quern_launch(QuernKernel kernel, const QuernLaunch* launch,
                                     const QuernArgument* arguments, size_t count);
/* One thread per task: `launch`'s grid is not read, nor is its block if that is 0 or 1 in each dimension. The
 * kernel checks its index against the number of tasks. */
QUERN_C_API QuernStatus quern_launch_for_all(QuernKernel kernel, uint64_t task_count,
                                             const QuernLaunch* launch, const QuernArgument* arguments,
                                             size_t count);
/* A Kernel Python kernel compiled for arguments of these types, or for types as Numba writes them, "float32,
 * float32[::1]". The functions below need a compiled kernel; kernels in other languages always are. */
QUERN_C_API QuernStatus quern_kernel_specialise_for(QuernKernel kernel, const QuernArgument* arguments,
                                                    size_t count, QuernKernel* special);
QUERN_C_API QuernStatus quern_kernel_specialise(QuernKernel kernel, const char* types, QuernKernel* special);

/* Since version 7. Does what the first launch with blocks of that shape would do before the kernel runs:
 * compiles Kernel Python for `types` (null: the source gives them), generates machine code on the CPU device.
 * Launches that follow do none of this. */
QUERN_C_API QuernStatus quern_kernel_prepare(QuernKernel kernel, const uint32_t block[3], const char* types);
/* The same on a thread of quern's. */
QUERN_C_API QuernStatus quern_kernel_prepare_async(QuernKernel kernel, const uint32_t block[3],
                                                   const char* types, QuernPending* pending);
/* The number of threads per block, at most `limit` (0: the kernel's own), with which the most threads are
 * resident at once, from the driver's occupancy calculator. */
QUERN_C_API QuernStatus quern_kernel_suggested_block(QuernKernel kernel, uint64_t shared_bytes,
                                                     uint32_t* threads);
QUERN_C_API QuernStatus quern_kernel_suggested_block_within(QuernKernel kernel, uint64_t shared_bytes,
                                                            uint32_t limit, uint32_t* threads);
/* The number of blocks of `block` threads that a multiprocessor, and the whole device, hold at once. */
QUERN_C_API QuernStatus quern_kernel_active_blocks(QuernKernel kernel, uint32_t block, uint64_t shared_bytes,
                                                   uint32_t* blocks);
QUERN_C_API QuernStatus quern_kernel_max_cooperative_blocks(QuernKernel kernel, uint32_t block,
                                                            uint64_t shared_bytes, uint64_t* blocks);
/* These three work for any kernel; for Kernel Python without argument types they give only the known facts.
 * QUERN_NOT_FOUND for an index too large. */
QUERN_C_API QuernStatus quern_kernel_info(QuernKernel kernel, QuernKernelInfo* info);
QUERN_C_API QuernStatus quern_kernel_parameter(QuernKernel kernel, size_t index, QuernParameter* parameter);
QUERN_C_API QuernStatus quern_kernel_text(QuernKernel kernel, QuernKernelText which, char* buffer,
                                          size_t bytes, size_t* needed);
/* CUfunction and its CUmodule; either pointer may be null. */
QUERN_C_API QuernStatus quern_kernel_native(QuernKernel kernel, void** cu_function, void** cu_module);

/* Uninitialised, C order. */
QUERN_C_API QuernStatus quern_array_new(QuernSession session, QuernDtype dtype, int32_t ndim,
                                        const int64_t* shape, QuernArray* array);
/* The same in memory that the host sees at `*host`, which lives as long as the handle. */
QUERN_C_API QuernStatus quern_array_new_mapped(QuernSession session, QuernDtype dtype, int32_t ndim,
                                               const int64_t* shape, QuernArray* array, void** host);
/* Uninitialised, of any element, order and positive strides; pooled memory is allocated on the stream. */
QUERN_C_API QuernStatus quern_array_make(QuernSession session, const QuernArrayType* type, QuernStream stream,
                                         QuernArray* array);
/* Mapped memory of any type. `flags`: QUERN_MAPPED_PORTABLE, usable from every device's context;
 * QUERN_MAPPED_WRITE_COMBINED, slow to read for the host. `*host` as above. */
enum { QUERN_MAPPED_PORTABLE = 1, QUERN_MAPPED_WRITE_COMBINED = 2 };
QUERN_C_API QuernStatus quern_array_make_mapped(QuernSession session, const QuernArrayType* type,
                                                uint32_t flags, QuernArray* array, void** host);
/* Memory that the driver moves between host and device by itself. */
QUERN_C_API QuernStatus quern_array_make_managed(QuernSession session, const QuernArrayType* type,
                                                 QuernArray* array, void** host);
/* Queues moving a managed array's memory to that side, ahead of its use; values do not change. */
QUERN_C_API QuernStatus quern_array_prefetch(QuernArray array, QuernWhere where, QuernStream stream);
/* Advice on the memory that a managed array covers; `where` counts for preferred_location and accessed_by. */
QUERN_C_API QuernStatus quern_array_advise(QuernArray array, QuernMemoryAdvice advice, QuernWhere where);
/* A device array of the host array's values, type and, where it is C or Fortran, order. */
QUERN_C_API QuernStatus quern_to_device(QuernSession session, const QuernHostArray* source,
                                        QuernArray* array);
QUERN_C_API QuernStatus quern_to_device_on(QuernSession session, const QuernHostArray* source,
                                           QuernStream stream, QuernArray* array);
/* Lets kernels access a host array as `*array`, until that and all views of it are released; the last release
 * waits for `stream` and ends the kernels' access. */
QUERN_C_API QuernStatus quern_map(QuernSession session, const QuernHostArray* host, QuernStream stream,
                                  QuernArray* array);

/* Views: they share the memory and keep it alive; no element is moved. */
QUERN_C_API QuernStatus quern_array_index(QuernArray array, const QuernIndex* indices, size_t count,
                                          QuernArray* view);
/* One extent may be -1. QUERN_USAGE if it needs a copy. */
QUERN_C_API QuernStatus quern_array_reshape(QuernArray array, int32_t ndim, const int64_t* shape,
                                            QuernOrder order, QuernArray* view);
QUERN_C_API QuernStatus quern_array_transpose(QuernArray array, QuernArray* view);
/* One field of every record; an array field adds its axes at the end. */
QUERN_C_API QuernStatus quern_array_field(QuernArray array, const char* name, QuernArray* view);
/* The same bytes as elements of another type; if the size differs, the last axis gets another extent. */
QUERN_C_API QuernStatus quern_array_as(QuernArray array, const QuernElement* element, QuernArray* view);
/* A contiguous array of its own memory, queued on the stream. */
QUERN_C_API QuernStatus quern_array_clone(QuernArray array, QuernOrder order, QuernStream stream,
                                          QuernArray* copy);

/* All elements in C order, exactly as many bytes as the array has. With a stream the copy is queued: the
 * source is staged before the call returns, the target must outlive the synchronisation. */
QUERN_C_API QuernStatus quern_array_from_host(QuernArray array, const void* source, size_t bytes);
QUERN_C_API QuernStatus quern_array_to_host(QuernArray array, void* target, size_t bytes);
QUERN_C_API QuernStatus quern_array_from_host_on(QuernArray array, const void* source, size_t bytes,
                                                 QuernStream stream);
QUERN_C_API QuernStatus quern_array_to_host_on(QuernArray array, void* target, size_t bytes,
                                               QuernStream stream);
/* The same with a host array of any strides, of the same shape and element. */
QUERN_C_API QuernStatus quern_array_from_host_array(QuernArray array, const QuernHostArray* source);
QUERN_C_API QuernStatus quern_array_from_host_array_on(QuernArray array, const QuernHostArray* source,
                                                       QuernStream stream);
QUERN_C_API QuernStatus quern_array_to_host_array(QuernArray array, const QuernHostArray* target);
QUERN_C_API QuernStatus quern_array_to_host_array_on(QuernArray array, const QuernHostArray* target,
                                                     QuernStream stream);
/* Sets every element from values that are broadcast to the array's shape, or from one value (no
 * dimensions). */
QUERN_C_API QuernStatus quern_array_assign(QuernArray array, const QuernHostArray* values);
QUERN_C_API QuernStatus quern_array_assign_on(QuernArray array, const QuernHostArray* values,
                                              QuernStream stream);
/* From one array to another of the same shape and element, on the device. */
QUERN_C_API QuernStatus quern_array_copy(QuernArray to, QuernArray from);
QUERN_C_API QuernStatus quern_array_copy_on(QuernArray to, QuernArray from, QuernStream stream);
/* Page-locks memory of the program's own until the handle is released; it must live as long. */
QUERN_C_API QuernStatus quern_pin(QuernSession session, void* memory, size_t bytes, QuernPin* pin);
/* Page-locked memory of the driver's at `*memory`, until the handle is released and queued copies have run.
 */
QUERN_C_API QuernStatus quern_pinned_new(QuernSession session, size_t bytes, QuernPin* pin, void** memory);
/* The array's description; its pointers live as long as the handle. It names no stream: all work on the array
 * has ended or is ordered by the caller. With the second form consumers wait for `stream`. */
QUERN_C_API QuernStatus quern_array_describe(QuernArray array, QuernCudaArray* description);
QUERN_C_API QuernStatus quern_array_describe_on(QuernArray array, QuernStream stream,
                                                QuernCudaArray* description);
/* A view of memory that others own; the call first waits for the stream that the description names. `release`
 * (may be null) is called with `user` when the last view is released, and also if the call fails. */
QUERN_C_API QuernStatus quern_array_adopt(QuernSession session, const QuernCudaArray* description,
                                          void (*release)(void* user), void* user, QuernArray* array);

/* An array that is copied between host and device only when a side that is out of date is requested. To be
 * used by one thread at a time. New, in C or Fortran order, undefined (the host side zeros); or with a copy
 * of values, or with the array itself as one side if `copy` is 0. */
QUERN_C_API QuernStatus quern_smart_new(QuernSession session, const QuernArrayType* type, QuernWhere where,
                                        QuernSmartArray* smart);
QUERN_C_API QuernStatus quern_smart_from_host(QuernSession session, const QuernHostArray* array, int32_t copy,
                                              QuernSmartArray* smart);
QUERN_C_API QuernStatus quern_smart_from_array(QuernSession session, QuernArray array, int32_t copy,
                                               QuernSmartArray* smart);
/* A side, updated if necessary. The host's side is contiguous in the array's order and lives as long as the
 * handle; request it again to read later results of the device. */
QUERN_C_API QuernStatus quern_smart_host(QuernSmartArray smart, void** data);
QUERN_C_API QuernStatus quern_smart_device(QuernSmartArray smart, QuernArray* array);
/* Reports a write to that side, by work on `stream`: the side is then up to date, even if it was out of date
 * before. Launches report their writes themselves. */
QUERN_C_API QuernStatus quern_smart_mark_changed(QuernSmartArray smart, QuernWhere where, QuernStream stream);
/* `*current` is not 0 if requesting that side copies nothing. */
QUERN_C_API QuernStatus quern_smart_is_current(QuernSmartArray smart, QuernWhere where, int32_t* current);

/* The array as a DLManagedTensorVersioned (DLPack 1.0), which the consumer releases by its deleter; as a
 * device array, or with `as_host` the host's side of a mapped one. */
QUERN_C_API QuernStatus quern_array_to_dlpack(QuernArray array, int32_t as_host, void** managed_tensor);
/* A view of another library's DLManagedTensorVersioned on this device; quern takes ownership of the tensor,
 * also if this fails. */
QUERN_C_API QuernStatus quern_array_from_dlpack(QuernSession session, void* managed_tensor,
                                                QuernArray* array);
/* Both with a DLManagedTensor, the ABI before 1.0, which cannot express that an array is read-only. */
QUERN_C_API QuernStatus quern_array_to_dlpack_unversioned(QuernArray array, int32_t as_host,
                                                          void** managed_tensor);
QUERN_C_API QuernStatus quern_array_from_dlpack_unversioned(QuernSession session, void* managed_tensor,
                                                            QuernArray* array);

QUERN_C_API QuernStatus quern_stream_new(QuernSession session, QuernStream* stream);
/* The same with a priority, or not ordered with the legacy default stream. */
QUERN_C_API QuernStatus quern_stream_make(QuernSession session, const QuernStreamOptions* options,
                                          QuernStream* stream);
/* The range of priorities that the device supports: 0 and -5, for example; equal if it has no priorities.
 * Either pointer may be null. */
QUERN_C_API QuernStatus quern_session_stream_priorities(QuernSession session, int32_t* least,
                                                        int32_t* greatest);
/* The values of the driver; either pointer may be null. */
QUERN_C_API QuernStatus quern_stream_info(QuernStream stream, int32_t* priority, int32_t* non_blocking);
/* A CUstream of the program's own, which must outlive all use; null is the default stream. */
QUERN_C_API QuernStatus quern_stream_external(QuernSession session, void* cu_stream, QuernStream* stream);
/* CU_STREAM_LEGACY and CU_STREAM_PER_THREAD. */
QUERN_C_API QuernStatus quern_stream_legacy_default(QuernSession session, QuernStream* stream);
QUERN_C_API QuernStatus quern_stream_per_thread_default(QuernSession session, QuernStream* stream);
/* Waits for the stream. QUERN_CANCELLED if work of the stream was cancelled meanwhile. */
QUERN_C_API QuernStatus quern_stream_synchronize(QuernStream stream);
/* Ends the launches that the stream has, running or queued, and returns when none of them runs. The memory
 * that they write to holds old, new or partly new values. Copies, events and callbacks that are queued still
 * run, and the stream takes new work. Threads that are waiting for the stream get QUERN_CANCELLED; later
 * calls do not report it. QUERN_UNSUPPORTED on a GPU. Since version 6. */
QUERN_C_API QuernStatus quern_stream_cancel(QuernStream stream);
QUERN_C_API QuernStatus quern_stream_query(QuernStream stream, int32_t* finished);
/* Calls `callback` when all work that is queued now has run, on a thread of the driver's: it must not call
 * quern or the driver. A context that a fault ended makes no calls any more. */
QUERN_C_API QuernStatus quern_stream_add_callback(QuernStream stream, void (*callback)(void* user),
                                                  void* user);
/* CUstream. */
QUERN_C_API QuernStatus quern_stream_native(QuernStream stream, void** cu_stream);

QUERN_C_API QuernStatus quern_event_new(QuernSession session, QuernEvent* event);
/* An event that costs less and cannot measure time. */
QUERN_C_API QuernStatus quern_event_new_untimed(QuernSession session, QuernEvent* event);
/* A CUevent of the program's own, which must outlive the handle. */
QUERN_C_API QuernStatus quern_event_external(QuernSession session, void* cu_event, QuernEvent* event);
/* Records the work that is queued on the stream now. */
QUERN_C_API QuernStatus quern_event_record(QuernEvent event, QuernStream stream);
/* Later work of the stream waits for the event. */
QUERN_C_API QuernStatus quern_event_wait(QuernEvent event, QuernStream stream);
QUERN_C_API QuernStatus quern_event_synchronize(QuernEvent event);
QUERN_C_API QuernStatus quern_event_query(QuernEvent event, int32_t* reached);
/* The time from `start` to `end`; both have been recorded and have happened. */
QUERN_C_API QuernStatus quern_event_elapsed_ms(QuernEvent start, QuernEvent end, double* ms);
/* CUevent. */
QUERN_C_API QuernStatus quern_event_native(QuernEvent event, void** cu_event);

/* Releases the handle with that `id`, of any kind. Objects made from it stay usable. */
QUERN_C_API QuernStatus quern_release(uint64_t id);

#ifdef __cplusplus
}
#endif
#endif
