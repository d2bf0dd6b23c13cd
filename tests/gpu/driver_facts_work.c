/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about streams, events, contexts, faults and launches. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver_facts.h"

/* What a driver loads at the first use of an operation must not be measured as its waiting. */
static void warm_up(CUdeviceptr memory, CUstream stream) {
  char host[16] = "";
  CUdeviceptr pooled;
  MUST(cuMemsetD8, memory, 0, 16);
  MUST(cuMemcpyHtoD, memory, host, 16);
  MUST(cuMemcpyDtoD, memory, memory + 64, 16);
  MUST(cuMemcpyDtoH, host, memory, 16);
  MUST(cuMemcpyHtoDAsync, memory, host, 16, stream);
  MUST(cuMemcpyDtoHAsync, host, memory, 16, stream);
  MUST(cuMemAllocAsync, &pooled, 16, stream);
  MUST(cuMemFreeAsync, pooled, stream);
  MUST(cuCtxSynchronize);
}

/* Which calls wait for a kernel in a stream of these flags. */
static void legacy_against(unsigned flags, int call) {
  start();
  CUstream stream = new_stream(flags), other = new_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr memory = device_memory(4096);
  CUevent event;
  MUST(cuEventCreate, &event, 0);
  char* const host = malloc(4096);
  memset(host, 0, 4096);
  warm_up(memory, other);
  spin(stream);
  switch (call) {
    case 0:
      WAITS("sync_null", cuStreamSynchronize, NULL);
      break;
    case 1:
      WAITS("sync_legacy", cuStreamSynchronize, CU_STREAM_LEGACY);
      break;
    case 2:
      WAITS("sync_per_thread", cuStreamSynchronize, CU_STREAM_PER_THREAD);
      break;
    case 3:
      WAITS("query_null", cuStreamQuery, NULL);
      WAITS("query_legacy", cuStreamQuery, CU_STREAM_LEGACY);
      WAITS("query_per_thread", cuStreamQuery, CU_STREAM_PER_THREAD);
      WAITS("query_own", cuStreamQuery, stream);
      break;
    case 4:
      WAITS("copy_dtoh", cuMemcpyDtoH, host, memory, 4);
      break;
    case 5:
      WAITS("copy_htod", cuMemcpyHtoD, memory, host, 4);
      break;
    case 6:
      WAITS("copy_dtod", cuMemcpyDtoD, memory, memory + 64, 4);
      break;
    case 7:
      WAITS("set", cuMemsetD8, memory, 1, 4);
      break;
    case 8:
      WAITS("copy_async_pageable", cuMemcpyDtoHAsync, host, memory, 4, other);
      break;
    case 9:
      WAITS("copy_async_pageable_same", cuMemcpyHtoDAsync, memory, host, 4, stream);
      break;
    case 10:
      WAITS("copy_async_pageable_from", cuMemcpyDtoHAsync, host, memory, 4, stream);
      break;
    case 11:
      MUST(cuEventRecord, event, NULL);
      R("event_of_null", cuEventQuery, event);
      WAITS("event_sync", cuEventSynchronize, event);
      break;
    case 12:
      WAITS("alloc", cuMemAlloc, &memory, 1 << 20);
      break;
    case 13:
      WAITS("free", cuMemFree, memory);
      break;
    case 14:
      WAITS("alloc_big", cuMemAlloc, &memory, 64 << 20);
      break;
  }
  stop_spinning();
}
QUESTION(wait_sync_null_blocking) { legacy_against(CU_STREAM_DEFAULT, 0); }
QUESTION(wait_sync_null_non_blocking) { legacy_against(CU_STREAM_NON_BLOCKING, 0); }
QUESTION(wait_sync_legacy_blocking) { legacy_against(CU_STREAM_DEFAULT, 1); }
QUESTION(wait_sync_legacy_non_blocking) { legacy_against(CU_STREAM_NON_BLOCKING, 1); }
QUESTION(wait_sync_per_thread_blocking) { legacy_against(CU_STREAM_DEFAULT, 2); }
QUESTION(wait_sync_per_thread_non_blocking) { legacy_against(CU_STREAM_NON_BLOCKING, 2); }
QUESTION(wait_query_blocking) { legacy_against(CU_STREAM_DEFAULT, 3); }
QUESTION(wait_query_non_blocking) { legacy_against(CU_STREAM_NON_BLOCKING, 3); }
QUESTION(wait_dtoh_blocking) { legacy_against(CU_STREAM_DEFAULT, 4); }
QUESTION(wait_dtoh_non_blocking) { legacy_against(CU_STREAM_NON_BLOCKING, 4); }
QUESTION(wait_htod_blocking) { legacy_against(CU_STREAM_DEFAULT, 5); }
QUESTION(wait_htod_non_blocking) { legacy_against(CU_STREAM_NON_BLOCKING, 5); }
QUESTION(wait_dtod_blocking) { legacy_against(CU_STREAM_DEFAULT, 6); }
QUESTION(wait_set_blocking) { legacy_against(CU_STREAM_DEFAULT, 7); }
QUESTION(wait_set_non_blocking) { legacy_against(CU_STREAM_NON_BLOCKING, 7); }
QUESTION(wait_async_pageable_other_stream) { legacy_against(CU_STREAM_NON_BLOCKING, 8); }
QUESTION(wait_async_pageable_htod_same) { legacy_against(CU_STREAM_NON_BLOCKING, 9); }
QUESTION(wait_async_pageable_dtoh_same) { legacy_against(CU_STREAM_NON_BLOCKING, 10); }
QUESTION(wait_event_of_null_blocking) { legacy_against(CU_STREAM_DEFAULT, 11); }
QUESTION(wait_event_of_null_non_blocking) { legacy_against(CU_STREAM_NON_BLOCKING, 11); }
QUESTION(wait_alloc) { legacy_against(CU_STREAM_NON_BLOCKING, 12); }
QUESTION(wait_free) { legacy_against(CU_STREAM_NON_BLOCKING, 13); }
QUESTION(wait_alloc_big) { legacy_against(CU_STREAM_NON_BLOCKING, 14); }
QUESTION(wait_per_thread_against_legacy) {
  start();
  spin(CU_STREAM_PER_THREAD);
  WAITS("sync_legacy", cuStreamSynchronize, CU_STREAM_LEGACY);
  stop_spinning();
}
QUESTION(wait_per_thread_behind_legacy) {
  start();
  spin(CU_STREAM_LEGACY);
  MUST(cuMemsetD8Async, device_memory(16), 1, 16, CU_STREAM_PER_THREAD);
  WAITS("sync_per_thread", cuStreamSynchronize, CU_STREAM_PER_THREAD);
  stop_spinning();
}

/* Which calls of a release wait for the kernel that runs. */
static void release_while_running(int call) {
  start();
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  CUevent event;
  void* host;
  CUmodule other;
  CUdeviceptr pooled;
  MUST(cuMemAllocAsync, &pooled, 4096, stream);
  MUST(cuEventCreate, &event, 0);
  MUST(cuMemAllocHost, &host, 4096);
  MUST(cuModuleLoadData, &other,
       ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry e() { ret; }\n");
  warm_up(pooled, stream);
  spin(stream);
  switch (call) {
    case 0:
      WAITS("module_unload_own", cuModuleUnload, base);
      break;
    case 1:
      WAITS("module_unload_other", cuModuleUnload, other);
      break;
    case 2:
      WAITS("stream_destroy", cuStreamDestroy, stream);
      WAITS("sync", cuCtxSynchronize);
      break;
    case 3:
      MUST(cuEventRecord, event, stream);
      WAITS("event_destroy", cuEventDestroy, event);
      break;
    case 4:
      WAITS("free_host", cuMemFreeHost, host);
      break;
    case 5:
      WAITS("free_pooled", cuMemFree, pooled);
      break;
    case 6:
      WAITS("module_load", cuModuleLoadData, &other,
            ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 g;\n.visible .entry f() { ret; }\n");
      break;
    case 7:
      WAITS("primary_reset", cuDevicePrimaryCtxReset, device);
      return;
    case 8:
      WAITS("primary_release", cuDevicePrimaryCtxRelease, device);
      return;
    case 9:
      WAITS("set_limit_heap", cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20);
      break;
    case 10:
      WAITS("alloc_host", cuMemAllocHost, &host, 1 << 20);
      break;
    case 11:
      WAITS("register", cuMemHostRegister, aligned_alloc(4096, 4096), 4096, 0);
      break;
    case 12:
      WAITS("sync_other_context", cuCtxSetCurrent, new_context());
      WAITS("sync", cuCtxSynchronize);
      WAITS("sync_null_stream", cuStreamSynchronize, NULL);
      break;
    case 13: {
      void (*const no_callback)(CUstream, CUresult, void*) = NULL;
      WAITS("callback_null", cuStreamAddCallback, stream, no_callback, NULL, 0);
      WAITS("host_function_null", cuLaunchHostFunc, stream, NULL, NULL);
      break;
    }
  }
  stop_spinning();
}
QUESTION(release_module_own) { release_while_running(0); }
QUESTION(release_module_other) { release_while_running(1); }
QUESTION(release_stream) { release_while_running(2); }
QUESTION(release_event) { release_while_running(3); }
QUESTION(release_free_host) { release_while_running(4); }
QUESTION(release_free_pooled) { release_while_running(5); }
QUESTION(release_module_load) { release_while_running(6); }
QUESTION(release_primary_reset) { release_while_running(7); }
QUESTION(release_primary_release) { release_while_running(8); }
QUESTION(release_set_heap_limit) { release_while_running(9); }
QUESTION(release_alloc_host) { release_while_running(10); }
QUESTION(release_register) { release_while_running(11); }
QUESTION(release_sync_other_context) { release_while_running(12); }
QUESTION(release_null_callbacks) { release_while_running(13); }

static void say_current(const char* label, CUcontext destroyed) {
  CUcontext now = (CUcontext)8;
  R(label, cuCtxGetCurrent, &now);
  say("%s; ", now == NULL        ? "null"
              : now == primary   ? "primary"
              : now == destroyed ? "the destroyed one"
                                 : "other");
}
QUESTION(context_destroy_running) {
  start();
  CUcontext other = new_context();
  MUST(cuCtxPushCurrent, other);
  MUST(cuModuleLoadData, &base,
       ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry spin(.param .u64 flags) {\n"
       " .reg .b64 a, t, t0; .reg .b32 x; .reg .pred p; ld.param.u64 a, [flags]; mov.u64 t0, %globaltimer;\n"
       " mov.u32 x, 1; st.volatile.global.u32 [a], x; membar.sys;\n"
       "again: mov.u64 t, %globaltimer; sub.u64 t, t, t0; setp.lt.u64 p, t, 700000000; @p bra again; ret; "
       "}\n");
  CUstream stream = new_stream(0);
  spin(stream);
  WAITS("destroy", cuCtxDestroy, other);
  say_current("current", other);
  R("sync_stream_of_it", cuStreamSynchronize, stream);
}
static CUcontext thread_context;
static int step;
static void* use_destroyed(void* nothing) {
  MUST(cuCtxSetCurrent, thread_context);
  CUdeviceptr memory;
  __atomic_store_n(&step, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&step, __ATOMIC_SEQ_CST) != 2) usleep(1000);
  CUcontext now;
  R("thread_get", cuCtxGetCurrent, &now);
  say("same=%d; ", now == thread_context);
  R("thread_sync", cuCtxSynchronize);
  R("thread_alloc", cuMemAlloc, &memory, 16);
  CUdevice of;
  R("thread_device", cuCtxGetDevice, &of);
  R("thread_pop", cuCtxPopCurrent, &now);
  R("thread_set", cuCtxSetCurrent, thread_context);
  R("thread_destroy", cuCtxDestroy, thread_context);
  return nothing;
}
QUESTION(context_destroyed_elsewhere) {
  start_without_module();
  thread_context = new_context();
  pthread_t thread;
  pthread_create(&thread, NULL, use_destroyed, NULL);
  while (__atomic_load_n(&step, __ATOMIC_SEQ_CST) != 1) usleep(1000);
  R("destroy", cuCtxDestroy, thread_context);
  __atomic_store_n(&step, 2, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
}
QUESTION(context_destroy_below_top) {
  start_without_module();
  CUcontext other = new_context(), popped = NULL;
  MUST(cuCtxPushCurrent, other);
  MUST(cuCtxPushCurrent, primary);
  R("destroy_below", cuCtxDestroy, other);
  R("pop", cuCtxPopCurrent, &popped);
  say("popped_primary=%d; ", popped == primary);
  say_current("current", other);
  R("pop", cuCtxPopCurrent, &popped);
  say_current("current", other);
}
QUESTION(context_destroy_primary) {
  start_without_module();
  R("destroy", cuCtxDestroy, primary);
  say_current("current", NULL);
  R("null", cuCtxDestroy, NULL);
  R("push_null", cuCtxPushCurrent, NULL);
  R("set_null", cuCtxSetCurrent, NULL);
  CUcontext popped;
  R("pop_empty", cuCtxPopCurrent, &popped);
  CUdevice of;
  R("device", cuCtxGetDevice, &of);
  R("sync", cuCtxSynchronize);
  CUdeviceptr memory;
  R("alloc", cuMemAlloc, &memory, 16);
  CUstream stream;
  R("stream", cuStreamCreate, &stream, 0);
}
static void use_primary_after(bool reset) {
  start();
  CUdeviceptr memory = device_memory(16), more;
  CUstream stream = new_stream(0);
  CUdevice of;
  if (reset)
    R("reset", cuDevicePrimaryCtxReset, device);
  else
    R("release", cuDevicePrimaryCtxRelease, device);
  unsigned flags;
  int active = 77;
  R("state", cuDevicePrimaryCtxGetState, device, &flags, &active);
  say("active=%d; ", active);
  say_current("current", NULL);
  R("device", cuCtxGetDevice, &of);
  R("sync", cuCtxSynchronize);
  R("alloc", cuMemAlloc, &more, 16);
  CUcontext again = NULL;
  R("retain", cuDevicePrimaryCtxRetain, &again, device);
  say("same_handle=%d; ", again == primary);
  R("state", cuDevicePrimaryCtxGetState, device, &flags, &active);
  say("active=%d; ", active);
  R("alloc", cuMemAlloc, &more, 16);
  R("set", cuCtxSetCurrent, again);
  R("alloc", cuMemAlloc, &more, 16);
  R("set_old_memory", cuMemsetD8, memory, 1, 16);
  R("sync_old_stream", cuStreamSynchronize, stream);
}
QUESTION(primary_released) { use_primary_after(false); }
QUESTION(primary_reset) { use_primary_after(true); }
QUESTION(primary_released_twice) {
  start_without_module();
  R("release", cuDevicePrimaryCtxRelease, device);
  R("release", cuDevicePrimaryCtxRelease, device);
  R("reset", cuDevicePrimaryCtxReset, device);
  R("set_flags", cuDevicePrimaryCtxSetFlags, device, CU_CTX_SCHED_YIELD);
  R("flags_bad", cuDevicePrimaryCtxSetFlags, device, 7);
}
QUESTION(context_limits) {
  start_without_module();
  for (int limit = 0; limit <= 8; ++limit) {
    size_t value = 0;
    const CUresult result = CU(cuCtxGetLimit)(&value, (CUlimit)limit);
    say("%d:%d:%zu; ", limit, result, value);
  }
  R("stack_huge", cuCtxSetLimit, CU_LIMIT_STACK_SIZE, (size_t)1 << 30);
  R("stack_1001", cuCtxSetLimit, CU_LIMIT_STACK_SIZE, 1001);
  size_t value = 0;
  R("get", cuCtxGetLimit, &value, CU_LIMIT_STACK_SIZE);
  say("%zu; ", value);
  R("heap_0", cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, 0);
  R("fifo_0", cuCtxSetLimit, CU_LIMIT_PRINTF_FIFO_SIZE, 0);
  R("get", cuCtxGetLimit, &value, CU_LIMIT_PRINTF_FIFO_SIZE);
  say("%zu; ", value);
  unsigned flags = 77, version = 77;
  R("flags", cuCtxGetFlags, &flags);
  R("version", cuCtxGetApiVersion, primary, &version);
  say("flags=%u version=%u; ", flags, version);
  R("version_null", cuCtxGetApiVersion, NULL, &version);
  int least = 77, greatest = 77;
  R("priorities", cuCtxGetStreamPriorityRange, &least, &greatest);
  say("%d..%d; ", least, greatest);
  CUstream stream;
  R("priority_clamped", cuStreamCreateWithPriority, &stream, 0, -100);
  int priority = 77;
  R("priority", cuStreamGetPriority, stream, &priority);
  say("%d; ", priority);
  R("stream_flags_9", cuStreamCreate, &stream, 9);
  CUcontext other;
  R("create_flags_7", cuCtxCreate, &other, NULL, 7, device);
  R("create_device_99", cuCtxCreate, &other, NULL, 0, 99);
}

/* Exits. */
static pthread_key_t key;
static void at_end(void* nothing) {
  (void)nothing;
  say_current("in_handler", NULL);
  CUdeviceptr memory;
  R("alloc", cuMemAlloc, &memory, 16);
  R("sync", cuCtxSynchronize);
}
static void at_exit_without_argument(void) { at_end(NULL); }
static void* end_with_key(void* nothing) {
  MUST(cuCtxSetCurrent, primary);
  pthread_setspecific(key, &key);
  return nothing;
}
QUESTION(exit_key_destructor) {
  start_without_module();
  pthread_key_create(&key, at_end);
  pthread_t thread;
  pthread_create(&thread, NULL, end_with_key, NULL);
  pthread_join(thread, NULL);
}
QUESTION(exit_key_made_before_init) {
  pthread_key_create(&key, at_end);
  start_without_module();
  pthread_t thread;
  pthread_create(&thread, NULL, end_with_key, NULL);
  pthread_join(thread, NULL);
}
QUESTION(exit_handler_before_init) {
  atexit(at_exit_without_argument);
  start_without_module();
  exit(0);
}
QUESTION(exit_handler_after_init) {
  start_without_module();
  atexit(at_exit_without_argument);
  exit(0);
}
static double exit_begin;
static void say_exit_time(void) {
  say("until_first_handler=%s; ", seconds() - exit_begin > 0.3 ? "waited" : "did not wait");
}
QUESTION(exit_while_running) {
  atexit(say_exit_time);
  start();
  spin(NULL);
  exit_begin = seconds();
  exit(0);
}

/* Stale handles: the process may crash, so each is a question. */
QUESTION(stale_stream) {
  start();
  CUstream stream = new_stream(0);
  R("destroy", cuStreamDestroy, stream);
  R("query", cuStreamQuery, stream);
  R("sync", cuStreamSynchronize, stream);
  say_result("launch", launch(stream, function("nothing"), NULL));
  R("destroy", cuStreamDestroy, stream);
}
QUESTION(stale_stream_destroy) {
  start_without_module();
  CUstream stream = new_stream(0);
  R("destroy", cuStreamDestroy, stream);
  R("again", cuStreamDestroy, stream);
}
QUESTION(stale_stream_null) {
  start_without_module();
  R("destroy_null", cuStreamDestroy, NULL);
  R("destroy_legacy", cuStreamDestroy, CU_STREAM_LEGACY);
  R("destroy_per_thread", cuStreamDestroy, CU_STREAM_PER_THREAD);
  unsigned flags = 77;
  R("flags_null", cuStreamGetFlags, NULL, &flags);
  say("%u; ", flags);
  R("flags_per_thread", cuStreamGetFlags, CU_STREAM_PER_THREAD, &flags);
  say("%u; ", flags);
  R("event_destroy_null", cuEventDestroy, NULL);
  R("event_query_null", cuEventQuery, NULL);
  R("event_sync_null", cuEventSynchronize, NULL);
  R("event_record_null", cuEventRecord, NULL, NULL);
  R("wait_event_null", cuStreamWaitEvent, NULL, NULL, 0);
  R("module_unload_null", cuModuleUnload, NULL);
  R("graph_destroy_null", cuGraphDestroy, NULL);
  R("graph_exec_destroy_null", cuGraphExecDestroy, NULL);
  R("library_unload_null", cuLibraryUnload, NULL);
  R("pool_destroy_null", cuMemPoolDestroy, NULL);
  R("launch_null", cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}
QUESTION(stale_event) {
  start_without_module();
  CUevent event;
  MUST(cuEventCreate, &event, 0);
  R("destroy", cuEventDestroy, event);
  R("query", cuEventQuery, event);
  R("record", cuEventRecord, event, NULL);
  R("wait", cuStreamWaitEvent, NULL, event, 0);
  R("destroy", cuEventDestroy, event);
}
QUESTION(stale_module) {
  start();
  CUfunction f = function("nothing");
  R("unload", cuModuleUnload, base);
  CUfunction g;
  R("get_function", cuModuleGetFunction, &g, base, "nothing");
  int value;
  R("attribute", cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_NUM_REGS, f);
  say_result("launch", launch(NULL, f, NULL));
  R("unload", cuModuleUnload, base);
}
QUESTION(stale_module_twice) {
  start();
  R("unload", cuModuleUnload, base);
  R("unload", cuModuleUnload, base);
}
QUESTION(stale_function_launch) {
  start();
  CUfunction f = function("nothing");
  R("unload", cuModuleUnload, base);
  say_result("launch", launch(NULL, f, NULL));
}
QUESTION(stale_graph) {
  start_without_module();
  CUgraph graph;
  MUST(cuGraphCreate, &graph, 0);
  R("destroy", cuGraphDestroy, graph);
  size_t count;
  R("nodes", cuGraphGetNodes, graph, NULL, &count);
  R("destroy", cuGraphDestroy, graph);
}
QUESTION(stale_graph_exec) {
  start_without_module();
  CUgraph graph;
  CUgraphExec exec;
  MUST(cuGraphCreate, &graph, 0);
  MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
  R("destroy", cuGraphExecDestroy, exec);
  R("launch", cuGraphLaunch, exec, NULL);
  R("destroy", cuGraphExecDestroy, exec);
}
QUESTION(stale_library) {
  start_without_module();
  CUlibrary library;
  CUkernel kernel;
  MUST(cuLibraryLoadData, &library,
       ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry e() { ret; }\n", NULL, NULL, 0, NULL,
       NULL, 0);
  MUST(cuLibraryGetKernel, &kernel, library, "e");
  R("missing", cuLibraryGetKernel, &kernel, library, "none");
  MUST(cuLibraryGetKernel, &kernel, library, "e");
  R("unload", cuLibraryUnload, library);
  CUfunction f;
  R("kernel_function", cuKernelGetFunction, &f, kernel);
  say_result("launch", launch(NULL, (CUfunction)kernel, NULL));
  R("get_kernel", cuLibraryGetKernel, &kernel, library, "e");
  R("unload", cuLibraryUnload, library);
}
QUESTION(stale_context) {
  start_without_module();
  CUcontext other = new_context();
  R("destroy", cuCtxDestroy, other);
  R("set", cuCtxSetCurrent, other);
  R("push", cuCtxPushCurrent, other);
  unsigned version;
  R("version", cuCtxGetApiVersion, other, &version);
  R("destroy", cuCtxDestroy, other);
}
QUESTION(stale_objects_of_context) {
  start_without_module();
  CUcontext other = new_context(), popped;
  MUST(cuCtxPushCurrent, other);
  CUstream stream = new_stream(0);
  CUevent event;
  CUdeviceptr memory = device_memory(16);
  MUST(cuEventCreate, &event, 0);
  MUST(cuCtxPopCurrent, &popped);
  R("destroy", cuCtxDestroy, other);
  R("free", cuMemFree, memory);
  R("stream_query", cuStreamQuery, stream);
  R("event_query", cuEventQuery, event);
  R("stream_destroy", cuStreamDestroy, stream);
  R("event_destroy", cuEventDestroy, event);
}

/* Events. */
QUESTION(event_rules) {
  start();
  CUevent never, timed, silent, pending;
  MUST(cuEventCreate, &never, 0);
  MUST(cuEventCreate, &timed, 0);
  MUST(cuEventCreate, &silent, CU_EVENT_DISABLE_TIMING);
  MUST(cuEventCreate, &pending, 0);
  R("flags_8", cuEventCreate, &pending, 8);
  R("interprocess_timed", cuEventCreate, &pending, CU_EVENT_INTERPROCESS);
  MUST(cuEventCreate, &pending, 0);
  R("query_never", cuEventQuery, never);
  R("sync_never", cuEventSynchronize, never);
  R("wait_never", cuStreamWaitEvent, NULL, never, 0);
  R("wait_flags_9", cuStreamWaitEvent, NULL, never, 9);
  R("record_flags_9", cuEventRecordWithFlags, never, NULL, 9);
  R("record_external_no_capture", cuEventRecordWithFlags, timed, NULL, CU_EVENT_RECORD_EXTERNAL);
  MUST(cuEventRecord, timed, NULL);
  MUST(cuEventRecord, silent, NULL);
  MUST(cuCtxSynchronize);
  float ms = 0;
  R("elapsed_never", cuEventElapsedTime, &ms, timed, never);
  R("elapsed_never_first", cuEventElapsedTime, &ms, never, timed);
  R("elapsed_silent", cuEventElapsedTime, &ms, timed, silent);
  R("elapsed_self", cuEventElapsedTime, &ms, timed, timed);
  say("zero=%d; ", ms == 0);
  R("elapsed_null", cuEventElapsedTime, &ms, timed, NULL);
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  spin(stream);
  MUST(cuEventRecord, pending, stream);
  R("elapsed_pending", cuEventElapsedTime, &ms, timed, pending);
  R("query_pending", cuEventQuery, pending);
  stop_spinning();
}
QUESTION(event_of_other_context) {
  start_without_module();
  CUevent event;
  MUST(cuEventCreate, &event, 0);
  CUcontext other = new_context();
  MUST(cuCtxSetCurrent, other);
  CUstream stream = new_stream(0);
  R("record_current_other", cuEventRecord, event, stream);
  R("record_null_stream", cuEventRecord, event, NULL);
  R("wait", cuStreamWaitEvent, stream, event, 0);
  R("query", cuEventQuery, event);
  R("sync", cuEventSynchronize, event);
  MUST(cuCtxSetCurrent, primary);
  R("record_current_own", cuEventRecord, event, stream);
  CUevent second;
  MUST(cuEventCreate, &second, 0);
  MUST(cuCtxSetCurrent, other);
  CUevent third;
  MUST(cuEventCreate, &third, 0);
  MUST(cuEventRecord, third, NULL);
  MUST(cuCtxSetCurrent, primary);
  MUST(cuEventRecord, second, NULL);
  MUST(cuEventSynchronize, second);
  MUST(cuEventSynchronize, third);
  float ms;
  R("elapsed_between", cuEventElapsedTime, &ms, second, third);
}
QUESTION(stream_of_other_context) {
  start();
  CUcontext other = new_context();
  MUST(cuCtxSetCurrent, other);
  CUstream stream = new_stream(0);
  CUdeviceptr theirs = device_memory(16);
  MUST(cuCtxSetCurrent, primary);
  CUdeviceptr ours = device_memory(16), pooled;
  R("set", cuMemsetD8Async, ours, 1, 16, stream);
  R("copy", cuMemcpyDtoDAsync, ours, theirs, 16, stream);
  say_result("launch_our_function", launch(stream, function("nothing"), NULL));
  R("alloc_async", cuMemAllocAsync, &pooled, 16, stream);
  R("sync", cuStreamSynchronize, stream);
  R("query", cuStreamQuery, stream);
  CUcontext of = NULL;
  R("get_context", cuStreamGetCtx, stream, &of);
  say("other=%d; ", of == other);
  R("free_theirs", cuMemFree, theirs);
  CUstream ours_too = new_stream(0);
  R("copy_attributes", cuStreamCopyAttributes, ours_too, stream);
  MUST(cuCtxSetCurrent, NULL);
  R("no_current_set", cuMemsetD8Async, ours, 1, 16, stream);
  R("no_current_sync", cuStreamSynchronize, stream);
  R("no_current_query", cuStreamQuery, stream);
  R("no_current_free", cuMemFree, ours);
  R("no_current_destroy", cuStreamDestroy, stream);
}

/* Faults. */
static CUdeviceptr fault_memory;
static CUresult launch_fault(const char* kind) {
  unsigned value = 1;
  CUdeviceptr at = !strcmp(kind, "null")           ? 0
                   : !strcmp(kind, "far")          ? 0x123456789000
                   : !strcmp(kind, "noncanonical") ? 0xfff0123456789000
                   : !strcmp(kind, "misaligned")   ? fault_memory + 2
                                                   : 0;
  void* parameters[] = {&at, &value};
  if (!strcmp(kind, "trap")) return launch(NULL, function("trap_it"), NULL);
  if (!strcmp(kind, "assert")) return launch(NULL, function("assert_it"), NULL);
  if (!strcmp(kind, "breakpoint")) return launch(NULL, function("breakpoint"), NULL);
  if (!strcmp(kind, "shared")) return launch(NULL, function("shared_past_end"), NULL);
  return launch(NULL, function("store"), parameters);
}
static void after_fault(const char* kind) {
  start();
  fault_memory = device_memory(64);
  CUdeviceptr memory = device_memory(64), more;
  CUstream stream = new_stream(0), made;
  CUevent event, pending, other_event;
  void *host, *host_more;
  CUmodule module;
  CUfunction f, nothing = function("nothing");
  int value;
  size_t size, total;
  CUgraph graph;
  CUcontext now;
  CUmemoryPool pool;
  MUST(cuEventCreate, &event, 0);
  MUST(cuEventCreate, &pending, 0);
  MUST(cuEventCreate, &other_event, 0);
  MUST(cuEventRecord, event, NULL);
  MUST(cuMemAllocHost, &host, 64);
  MUST(cuMemAllocAsync, &more, 64, NULL);
  MUST(cuCtxSynchronize);
  spin(NULL); /* nothing of the following is reported before all of it is queued */
  say_result("launch", launch_fault(kind));
  R("record_behind", cuEventRecord, pending, NULL);
  stop_spinning();
  R("sync", cuCtxSynchronize);
  R("sync_again", cuCtxSynchronize);
  R("stream_sync_other", cuStreamSynchronize, stream);
  R("stream_query", cuStreamQuery, NULL);
  R("event_query_before", cuEventQuery, event);
  R("event_query_after", cuEventQuery, pending);
  R("event_sync", cuEventSynchronize, event);
  float ms;
  R("event_elapsed", cuEventElapsedTime, &ms, event, event);
  R("event_create", cuEventCreate, &other_event, 0);
  R("event_record", cuEventRecord, event, NULL);
  R("wait_event", cuStreamWaitEvent, stream, event, 0);
  R("stream_create", cuStreamCreate, &made, 0);
  unsigned flags;
  R("stream_flags", cuStreamGetFlags, stream, &flags);
  R("alloc", cuMemAlloc, &memory, 64);
  R("alloc_async", cuMemAllocAsync, &memory, 64, NULL);
  R("free_async", cuMemFreeAsync, more, NULL);
  R("alloc_host", cuMemAllocHost, &host_more, 64);
  R("copy_htod", cuMemcpyHtoD, fault_memory, host, 4);
  R("copy_zero", cuMemcpyHtoD, fault_memory, host, 0);
  R("copy_async", cuMemcpyHtoDAsync, fault_memory, host, 4, stream);
  R("set", cuMemsetD8, fault_memory, 1, 4);
  say_result("launch_again", launch(NULL, nothing, NULL));
  R("host_function", cuLaunchHostFunc, stream, (CUhostFn)free, NULL);
  R("module_load", cuModuleLoadData, &module, ".version 8.0\n.target sm_80\n.address_size 64\n");
  R("module_function", cuModuleGetFunction, &f, base, "nothing");
  R("module_global", cuModuleGetGlobal, &more, &size, base, "variable");
  R("function_attribute", cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_NUM_REGS, nothing);
  R("occupancy", cuOccupancyMaxActiveBlocksPerMultiprocessor, &value, nothing, 32, 0);
  R("pointer_attribute", cuPointerGetAttribute, &value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, fault_memory);
  R("address_range", cuMemGetAddressRange, &more, &size, fault_memory);
  R("mem_info", cuMemGetInfo, &size, &total);
  R("get_limit", cuCtxGetLimit, &size, CU_LIMIT_STACK_SIZE);
  R("ctx_device", cuCtxGetDevice, &value);
  R("ctx_flags", cuCtxGetFlags, &flags);
  R("ctx_current", cuCtxGetCurrent, &now);
  R("ctx_set", cuCtxSetCurrent, primary);
  R("ctx_push", cuCtxPushCurrent, primary);
  R("ctx_pop", cuCtxPopCurrent, &now);
  R("device_get", cuDeviceGet, &value, 0);
  R("device_attribute", cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device);
  R("default_pool", cuDeviceGetDefaultMemPool, &pool, device);
  R("graph_create", cuGraphCreate, &graph, 0);
  R("begin_capture", cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  R("event_destroy", cuEventDestroy, event);
  R("stream_destroy", cuStreamDestroy, stream);
  R("module_unload", cuModuleUnload, base);
  R("free", cuMemFree, fault_memory);
  R("free_host", cuMemFreeHost, host);
  R("retain", cuDevicePrimaryCtxRetain, &now, device);
  R("create", cuCtxCreate, &now, NULL, 0, device);
  CUcontext popped;
  R("pop", cuCtxPopCurrent, &popped);
  R("reset", cuDevicePrimaryCtxReset, device);
  R("retain", cuDevicePrimaryCtxRetain, &primary, device);
  R("set", cuCtxSetCurrent, primary);
  R("alloc", cuMemAlloc, &more, 64);
  R("set_memory", cuMemsetD8, more, 1, 64);
  R("sync", cuCtxSynchronize);
}
QUESTION(fault_null) { after_fault("null"); }
QUESTION(fault_far) { after_fault("far"); }
QUESTION(fault_noncanonical) { after_fault("noncanonical"); }
QUESTION(fault_misaligned) { after_fault("misaligned"); }
QUESTION(fault_trap) { after_fault("trap"); }
QUESTION(fault_assert) { after_fault("assert"); }
QUESTION(fault_breakpoint) { after_fault("breakpoint"); }
QUESTION(fault_shared) { after_fault("shared"); }
QUESTION(fault_context_recovery) {
  start_without_module();
  CUcontext other = new_context();
  MUST(cuCtxSetCurrent, other);
  CUmodule module;
  MUST(cuModuleLoadData, &module,
       ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry t() { trap; ret; }\n");
  CUfunction f;
  MUST(cuModuleGetFunction, &f, module, "t");
  say_result("launch", launch(NULL, f, NULL));
  R("sync", cuCtxSynchronize);
  R("set_primary", cuCtxSetCurrent, primary);
  CUdeviceptr memory;
  R("primary_alloc", cuMemAlloc, &memory, 64);
  R("primary_set", cuMemsetD8, memory, 1, 64);
  R("primary_sync", cuCtxSynchronize);
  R("destroy", cuCtxDestroy, other);
  R("primary_sync", cuCtxSynchronize);
  R("create", cuCtxCreate, &other, NULL, 0, device);
  R("alloc", cuMemAlloc, &memory, 64);
  R("set", cuMemsetD8, memory, 1, 64);
  R("sync", cuCtxSynchronize);
}
QUESTION(fault_where_reported) {
  start();
  CUevent event;
  MUST(cuEventCreate, &event, 0);
  CUfunction nothing = function("nothing");
  spin(NULL);
  say_result("launch", launch(NULL, function("trap_it"), NULL));
  R("record_behind", cuEventRecord, event, NULL);
  stop_spinning();
  usleep(300000);
  say_result("later_launch", launch(NULL, nothing, NULL));
  R("get_last", cuStreamQuery, NULL);
  R("event_sync", cuEventSynchronize, event);
}

/* Host functions. */
/* Each call in a callback is a question, since it may wait for itself. */
static CUresult in_callback[1];
static CUstream callback_stream;
static void call_driver(void* call) {
  CUdeviceptr memory = 0;
  CUcontext now;
  CUdevice of;
  switch (*(int*)call) {
    case 0:
      in_callback[0] = CU(cuMemAlloc)(&memory, 16);
      break;
    case 1:
      in_callback[0] = CU(cuStreamQuery)(callback_stream);
      break;
    case 2:
      in_callback[0] = CU(cuCtxGetCurrent)(&now);
      break;
    case 3:
      in_callback[0] = CU(cuDeviceGet)(&of, 0);
      break;
    case 4:
      in_callback[0] = CU(cuMemFree)(fault_memory);
      break;
    case 5:
      in_callback[0] = CU(cuCtxSynchronize)();
      break;
    case 6:
      in_callback[0] = CU(cuCtxGetDevice)(&of);
      break;
    case 7:
      in_callback[0] = CU(cuStreamSynchronize)(callback_stream);
      break;
    case 8:
      in_callback[0] = CU(cuCtxSetCurrent)(primary);
      break;
    case 9:
      in_callback[0] = CU(cuStreamCreate)(&callback_stream, 0);
      break;
    case 10:
      in_callback[0] = CU(cuMemcpyDtoHAsync)(&of, fault_memory, 4, callback_stream);
      break;
    case 11:
      in_callback[0] = CU(cuCtxGetCurrent)(&now), in_callback[0] = now ? (CUresult)1 : (CUresult)0;
      break;
  }
}
static void call_driver_old(CUstream stream, CUresult status, void* call) {
  (void)stream, (void)status;
  call_driver(call);
}
static void ask_callback(int call) {
  start_without_module();
  fault_memory = device_memory(16);
  callback_stream = new_stream(0);
  CUstream stream = callback_stream;
  in_callback[0] = (CUresult)999;
  R("launch", cuLaunchHostFunc, stream, call_driver, &call);
  R("sync", cuStreamSynchronize, stream);
  say_result("call", in_callback[0]);
  in_callback[0] = (CUresult)999;
  callback_stream = stream;
  R("add", cuStreamAddCallback, stream, call_driver_old, &call, 0);
  R("sync", cuStreamSynchronize, stream);
  say_result("call", in_callback[0]);
}
QUESTION(callback_alloc) { ask_callback(0); }
QUESTION(callback_stream_query) { ask_callback(1); }
QUESTION(callback_get_current) { ask_callback(2); }
QUESTION(callback_device_get) { ask_callback(3); }
QUESTION(callback_free) { ask_callback(4); }
QUESTION(callback_ctx_sync) { ask_callback(5); }
QUESTION(callback_ctx_device) { ask_callback(6); }
QUESTION(callback_stream_sync) { ask_callback(7); }
QUESTION(callback_set_current) { ask_callback(8); }
QUESTION(callback_stream_create) { ask_callback(9); }
QUESTION(callback_copy_async) { ask_callback(10); }
QUESTION(callback_has_current) { ask_callback(11); }
static void old_callback(CUstream stream, CUresult status, void* data) {
  (void)stream;
  in_callback[0] = status;
  *(int*)data = 1;
}
QUESTION(callback_after_fault) {
  start();
  int called = 0, call = 3;
  in_callback[0] = (CUresult)999;
  CUfunction trap = function("trap_it");
  spin(NULL);
  say_result("launch", launch(NULL, trap, NULL));
  R("add", cuStreamAddCallback, NULL, old_callback, &called, 0);
  R("host_function", cuLaunchHostFunc, NULL, call_driver, &call);
  stop_spinning();
  R("sync", cuCtxSynchronize);
  usleep(200000);
  say("called=%d; ", called);
  say_result("status", in_callback[0]);
  R("add_after", cuStreamAddCallback, NULL, old_callback, &called, 0);
}
