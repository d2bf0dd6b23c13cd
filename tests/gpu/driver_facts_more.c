/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that the conformance suite asks the CPU device alone. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver_facts.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

QUESTION(more_context_hints) {
  start_without_module();
  CUfunc_cache cache = (CUfunc_cache)77;
  R("cache", cuCtxGetCacheConfig, &cache);
  say("%d; ", (int)cache);
  R("set_cache", cuCtxSetCacheConfig, CU_FUNC_CACHE_PREFER_SHARED);
  R("cache", cuCtxGetCacheConfig, &cache);
  say("%d; ", (int)cache);
  R("set_cache_9", cuCtxSetCacheConfig, (CUfunc_cache)9);
  CUsharedconfig shared = (CUsharedconfig)77;
  R("set_banks", cuCtxSetSharedMemConfig, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
  R("banks", cuCtxGetSharedMemConfig, &shared);
  say("%d; ", (int)shared);
  CUexecAffinityParam affinity;
  R("affinity", cuCtxGetExecAffinity, &affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT);
  R("reset_l2", cuCtxResetPersistingL2Cache);
  R("set_flags_4096", cuCtxSetFlags, 0x1000);
  CUmoduleLoadingMode mode = (CUmoduleLoadingMode)77;
  R("loading_mode", cuModuleGetLoadingMode, &mode);
  say("%d; ", (int)mode);
  CUcontext attached;
  R("attach_primary", cuCtxAttach, &attached, 0);
  R("detach_primary", cuCtxDetach, primary);
  R("enable_peer_itself", cuCtxEnablePeerAccess, primary, 0);
  int can = 77;
  R("can_access_itself", cuDeviceCanAccessPeer, &can, device, device);
  say("%d; ", can);
  CUuuid first, second;
  R("uuid", cuDeviceGetUuid, &first, device);
  R("uuid_again", cuDeviceGetUuid, &second, device);
  say("same=%d; ", !memcmp(&first, &second, sizeof first));
}
QUESTION(more_context_api_version) {
  start_without_module();
  CUcontext made;
  unsigned version = 77, flags = 77;
  MUST(cuCtxCreate, &made, NULL, CU_CTX_SCHED_SPIN, device);
  R("version_of_v4", cuCtxGetApiVersion, made, &version);
  R("flags", cuCtxGetFlags, &flags);
  say("version=%u flags=%u; ", version, flags);
  CUresult (*const oldest)(CUcontext*, unsigned, CUdevice) =
      (CUresult(*)(CUcontext*, unsigned, CUdevice))find_function("cuCtxCreate");
  say_result("oldest", oldest(&made, CU_CTX_SCHED_SPIN, device));
  R("version_of_oldest", cuCtxGetApiVersion, made, &version);
  say("version=%u; ", version);
}
QUESTION(more_memory_of_contexts) {
  start_without_module();
  size_t before, after, total;
  CUcontext other = new_context();
  MUST(cuMemGetInfo, &before, &total);
  MUST(cuCtxPushCurrent, other);
  device_memory(64 << 20);
  R("destroy", cuCtxDestroy, other);
  MUST(cuMemGetInfo, &after, &total);
  say("given_back=%d; ", after >= before);
}
QUESTION(more_free_async) {
  start_without_module();
  void* host;
  CUdeviceptr memory, managed;
  CUstream stream = new_stream(0);
  MUST(cuMemAllocHost, &host, 64);
  R("free_async_of_host", cuMemFreeAsync, (CUdeviceptr)host, stream);
  memory = device_memory(4096);
  R("free_async_inside", cuMemFreeAsync, memory + 64, stream);
  MUST(cuMemAllocManaged, &managed, 4096, CU_MEM_ATTACH_GLOBAL);
  R("free_async_of_managed", cuMemFreeAsync, managed, stream);
  R("free_async_legacy", cuMemFreeAsync, memory, NULL);
}
QUESTION(more_managed_advice) {
  start_without_module();
  CUdeviceptr managed, plain = device_memory(64);
  CUstream stream = new_stream(0);
  const CUmemLocation on_device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                      on_host = {.type = CU_MEM_LOCATION_TYPE_HOST, .id = 0};
  const CUmemLocation nowhere = {.type = CU_MEM_LOCATION_TYPE_INVALID, .id = 0},
                      far = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 77};
  MUST(cuMemAllocManaged, &managed, 4096, CU_MEM_ATTACH_GLOBAL);
  R("prefetch", cuMemPrefetchAsync, managed, 4096, on_device, 0, stream);
  R("prefetch_part", cuMemPrefetchAsync, managed + 96, 4000, on_host, 0, NULL);
  R("prefetch_flags", cuMemPrefetchAsync, managed, 4096, on_device, 1, stream);
  R("prefetch_past", cuMemPrefetchAsync, managed, 4097, on_device, 0, stream);
  R("prefetch_0", cuMemPrefetchAsync, managed, 0, on_device, 0, stream);
  R("prefetch_far", cuMemPrefetchAsync, managed, 16, far, 0, stream);
  R("prefetch_nowhere", cuMemPrefetchAsync, managed, 16, nowhere, 0, stream);
  R("prefetch_plain", cuMemPrefetchAsync, plain, 64, on_device, 0, stream);
  R("advise", cuMemAdvise, managed, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on_host);
  R("advise_nowhere", cuMemAdvise, managed, 10, CU_MEM_ADVISE_SET_READ_MOSTLY, nowhere);
  R("advise_7", cuMemAdvise, managed, 16, (CUmem_advise)17, on_host);
  R("advise_far", cuMemAdvise, managed, 16, CU_MEM_ADVISE_SET_ACCESSED_BY, far);
  R("advise_plain", cuMemAdvise, plain, 64, CU_MEM_ADVISE_SET_READ_MOSTLY, on_host);
  R("attach", cuStreamAttachMemAsync, stream, managed, 0, CU_MEM_ATTACH_SINGLE);
  R("attach_flags_9", cuStreamAttachMemAsync, stream, managed, 0, 9);
  R("attach_plain", cuStreamAttachMemAsync, stream, plain, 0, CU_MEM_ATTACH_SINGLE);
  R("attach_null_stream", cuStreamAttachMemAsync, NULL, managed, 0, CU_MEM_ATTACH_SINGLE);
  R("sync", cuCtxSynchronize);
}
QUESTION(more_managed_pool) {
  start_without_module();
  CUmemLocation nowhere = {.type = CU_MEM_LOCATION_TYPE_NONE, .id = 0},
                of_host = {.type = CU_MEM_LOCATION_TYPE_HOST, .id = 0};
  CUmemoryPool pool = NULL;
  R("managed", cuMemGetMemPool, &pool, &nowhere, CU_MEM_ALLOCATION_TYPE_MANAGED);
  R("pinned_nowhere", cuMemGetMemPool, &pool, &nowhere, CU_MEM_ALLOCATION_TYPE_PINNED);
  R("pinned_host", cuMemGetMemPool, &pool, &of_host, CU_MEM_ALLOCATION_TYPE_PINNED);
  R("default_host", cuMemGetDefaultMemPool, &pool, &of_host, CU_MEM_ALLOCATION_TYPE_PINNED);
}
QUESTION(more_deprecated_launch) {
  start();
  CUfunction f = function("store");
  CUdeviceptr memory = device_memory(16);
  R("no_shape", cuLaunch, f);
  R("shape_2048", cuFuncSetBlockShape, f, 2048, 1, 1);
  R("shape_65_of_64", cuFuncSetBlockShape, function("bounded"), 65, 1, 1);
  R("shape", cuFuncSetBlockShape, f, 1, 1, 1);
  R("shared_1m", cuFuncSetSharedSize, f, 1 << 20);
  R("shared_0", cuFuncSetSharedSize, f, 0);
  R("size_1m", cuParamSetSize, f, 1 << 20);
  R("size_short", cuParamSetSize, f, 4);
  R("launch_short", cuLaunch, f);
  R("size", cuParamSetSize, f, 12);
  R("seti_negative", cuParamSeti, f, -4, 1);
  R("setv", cuParamSetv, f, 0, &memory, 8);
  R("seti", cuParamSeti, f, 8, 5);
  R("launch", cuLaunch, f);
  R("grid_0", cuLaunchGrid, f, 0, 1);
  unsigned word = 0;
  R("copy", cuMemcpyDtoH, &word, memory, 4);
  say("%u; ", word);
  R("cache_null", cuFuncSetCacheConfig, NULL, CU_FUNC_CACHE_PREFER_L1);
}
QUESTION(more_cooperative_multi) {
  start();
  CUDA_LAUNCH_PARAMS one = {function("nothing"), 2, 1, 1, 32, 1, 1, 0, new_stream(0), NULL};
  R("one", cuLaunchCooperativeKernelMultiDevice, &one, 1, 0);
  one.hStream = NULL;
  R("null_stream", cuLaunchCooperativeKernelMultiDevice, &one, 1, 0);
  R("count_0", cuLaunchCooperativeKernelMultiDevice, &one, 0, 0);
}
QUESTION(more_link_errors) {
  start_without_module();
  CUlinkState link;
  char bytes[64] = "nonsense";
  MUST(cuLinkCreate, 0, NULL, NULL, &link);
  R("cubin_garbage", cuLinkAddData, link, CU_JIT_INPUT_CUBIN, bytes, sizeof bytes, "x", 0, NULL, NULL);
  R("null_data", cuLinkAddData, link, CU_JIT_INPUT_PTX, NULL, 8, "x", 0, NULL, NULL);
  R("type_99", cuLinkAddData, link, (CUjitInputType)99, bytes, 8, "x", 0, NULL, NULL);
  R("null_output", cuLinkCreate, 0, NULL, NULL, NULL);
  R("destroy", cuLinkDestroy, link);
}
QUESTION(more_link_destroyed) {
  start_without_module();
  CUlinkState link;
  MUST(cuLinkCreate, 0, NULL, NULL, &link);
  R("destroy", cuLinkDestroy, link);
  R("destroy", cuLinkDestroy, link);
}
QUESTION(more_ipc) {
  start_without_module();
  CUevent plain, shared, opened;
  CUipcEventHandle event_handle;
  CUipcMemHandle handle;
  MUST(cuEventCreate, &plain, CU_EVENT_DISABLE_TIMING);
  R("create_shared", cuEventCreate, &shared, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
  R("of_plain", cuIpcGetEventHandle, &event_handle, plain);
  R("of_shared", cuIpcGetEventHandle, &event_handle, shared);
  R("open_own", cuIpcOpenEventHandle, &opened, event_handle);
  memset(&event_handle, 0, sizeof event_handle);
  R("open_zero", cuIpcOpenEventHandle, &opened, event_handle);
  float ms;
  R("elapsed", cuEventElapsedTime, &ms, shared, shared);
  CUdeviceptr memory = device_memory(4096), pooled, found;
  R("memory", cuIpcGetMemHandle, &handle, memory);
  R("memory_inside", cuIpcGetMemHandle, &handle, memory + 16);
  R("open_own_memory", cuIpcOpenMemHandle, &found, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  R("open_flags_0", cuIpcOpenMemHandle, &found, handle, 0);
  void* host;
  MUST(cuMemAllocHost, &host, 64);
  R("host", cuIpcGetMemHandle, &handle, (CUdeviceptr)host);
  MUST(cuMemAllocAsync, &pooled, 64, NULL);
  MUST(cuCtxSynchronize);
  R("pooled", cuIpcGetMemHandle, &handle, pooled);
  R("close_own", cuIpcCloseMemHandle, memory);
  memset(&handle, 0, sizeof handle);
  R("open_zero_memory", cuIpcOpenMemHandle, &found, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}
QUESTION(more_address_range_handle) {
  start_without_module();
  int file = -1;
  R("plain", cuMemGetHandleForAddressRange, &file, device_memory(4096), 4096,
    CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  R("bad", cuMemGetHandleForAddressRange, &file, 0x1000, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
}
QUESTION(more_export_of_memory) {
  start_without_module();
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  CUmemGenericAllocationHandle memory, imported;
  int file = -1;
  MUST(cuMemCreate, &memory, 2 << 20, &properties, 0);
  R("not_asked_for", cuMemExportToShareableHandle, &file, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    0);
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  MUST(cuMemCreate, &memory, 2 << 20, &properties, 0);
  R("export", cuMemExportToShareableHandle, &file, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  R("export_flags", cuMemExportToShareableHandle, &file, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1);
  R("import", cuMemImportFromShareableHandle, &imported, (void*)(intptr_t)file,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  say("same=%d; ", imported == memory);
  const int nothing = open("/dev/null", O_RDONLY);
  R("import_other_file", cuMemImportFromShareableHandle, &imported, (void*)(intptr_t)nothing,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  R("import_closed", cuMemImportFromShareableHandle, &imported, (void*)(intptr_t)999,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  properties.location.type = CU_MEM_LOCATION_TYPE_HOST;
  R("create_on_host", cuMemCreate, &memory, 2 << 20, &properties, 0);
  properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  R("create_on_node", cuMemCreate, &memory, 2 << 20, &properties, 0);
}
static void work_of_context(bool of_other) {
  start();
  CUcontext other = new_context();
  CUstream first = new_stream(CU_STREAM_NON_BLOCKING), second = new_stream(CU_STREAM_NON_BLOCKING);
  CUevent event;
  MUST(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
  spin(first);
  R("record", cuCtxRecordEvent, of_other ? other : primary, event);
  R("query", cuEventQuery, event);
  R("wait", cuCtxWaitEvent, primary, event);
  MUST(cuMemsetD8Async, device_memory(16), 1, 16, second);
  R("second", cuStreamQuery, second);
  R("later_stream", cuStreamQuery, new_stream(CU_STREAM_NON_BLOCKING));
  stop_spinning();
}
QUESTION(more_context_event) { work_of_context(false); }
QUESTION(more_context_event_other) { work_of_context(true); }
QUESTION(more_graph_dot_unwritable) {
  start_without_module();
  CUgraph graph;
  MUST(cuGraphCreate, &graph, 0);
  R("missing_folder", cuGraphDebugDotPrint, graph, "/nonexistent/graph.dot", 0);
  R("full", cuGraphDebugDotPrint, graph, "/dev/full", 0);
  R("null", cuGraphDebugDotPrint, graph, NULL, 0);
}
QUESTION(more_parameters_of_functions) {
  start();
  size_t offset = 77, size = 77;
  CUfunction f = function("store");
  R("first", cuFuncGetParamInfo, f, 0, &offset, &size);
  say("%zu,%zu; ", offset, size);
  R("second", cuFuncGetParamInfo, f, 1, &offset, &size);
  say("%zu,%zu; ", offset, size);
  R("third", cuFuncGetParamInfo, f, 2, &offset, &size);
  const char* name = NULL;
  R("name", cuFuncGetName, &name, f);
  say("%s; ", name ? name : "null");
  CUmodule of = NULL;
  R("module", cuFuncGetModule, &of, f);
  say("same=%d; ", of == base);
  CUfunctionLoadingState state = (CUfunctionLoadingState)77;
  R("loaded", cuFuncIsLoaded, &state, f);
  say("%d; ", (int)state);
}
QUESTION(more_bad_stream) {
  start_without_module();
  static char zeros[4096];
  R("zeros", cuStreamQuery, (CUstream)zeros);
  R("number", cuStreamQuery, (CUstream)0x1234);
}
QUESTION(more_targets) {
  start_without_module();
  static const char* const kTargets[] = {"sm_52",  "sm_75",  "sm_86",   "sm_87",   "sm_89",  "sm_90",
                                         "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_103", "sm_120"};
  for (size_t i = 0; i < sizeof kTargets / sizeof *kTargets; ++i) {
    char text[256];
    CUmodule module;
    snprintf(text, sizeof text, ".version 9.0\n.target %s\n.address_size 64\n.visible .entry k() { ret; }",
             kTargets[i]);
    R(kTargets[i], cuModuleLoadData, &module, text);
  }
}
QUESTION(more_heap) {
  start_without_module();
  CUmodule module;
  MUST(cuModuleLoadData, &module,
       ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func (.param .b64 r) malloc(.param .b64 n);\n"
       ".visible .entry m(.param .u64 out, .param .u64 n) { .reg .b64 a, x; .param .b64 r; .param .b64 c; "
       "ld.param.u64 a, [out];\n"
       " ld.param.u64 x, [n]; st.param.b64 [c], x; call.uni (r), malloc, (c); ld.param.b64 x, [r]; "
       "st.global.u64 [a], x; ret; }\n");
  CUfunction f;
  MUST(cuModuleGetFunction, &f, module, "m");
  CUdeviceptr out = device_memory(8);
  static const unsigned long long kSizes[] = {0, 1, 1 << 20, 7 << 20, 64 << 20, ~0ull};
  for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; ++i) {
    unsigned long long n = kSizes[i], got = 77;
    void* parameters[] = {&out, &n};
    say_result("launch", launch(NULL, f, parameters));
    R("copy", cuMemcpyDtoH, &got, out, 8);
    say("%llu:%s aligned16=%d; ", n, got ? "some" : "null", got % 16 == 0);
  }
  R("limit_after_launch", cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20);
  unsigned long long n = 16;
  void* parameters[] = {&out, &n};
  say_result("launch", launch(NULL, f, parameters));
  R("sync", cuCtxSynchronize);
}

/* Questions about what the conformance suite found otherwise on a GPU. */

static const char kSecondThread[] = "thread_end";
static CUstream stream_of_other_thread;
static void* end_capture_here(void* nothing) {
  CUgraph graph = (CUgraph)8;
  MUST(cuCtxSetCurrent, primary);
  say_result(kSecondThread, CU(cuStreamEndCapture)(stream_of_other_thread, &graph));
  say("graph=%s; ", graph ? "some" : "null");
  return nothing;
}
QUESTION(more_capture_wrong_thread) {
  start_without_module();
  const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL};
  for (int i = 0; i < 2; ++i) {
    stream_of_other_thread = new_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuStreamBeginCapture, stream_of_other_thread, modes[i]);
    pthread_t thread;
    pthread_create(&thread, NULL, end_capture_here, NULL);
    pthread_join(thread, NULL);
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
    R("is_capturing", cuStreamIsCapturing, stream_of_other_thread, &status);
    say("%d; ", (int)status);
    CUgraph graph = (CUgraph)8;
    R("end", cuStreamEndCapture, stream_of_other_thread, &graph);
  }
  R("sync", cuCtxSynchronize);
}
QUESTION(more_capture_of_a_launch) {
  start();
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  CUgraph graph, captured = NULL;
  CUgraphExec exec;
  CUgraphNode node;
  MUST(cuGraphCreate, &graph, 0);
  MUST(cuGraphAddEmptyNode, &node, graph, NULL, 0);
  MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
  MUST(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  R("launch", cuGraphLaunch, exec, stream);
  CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
  R("is_capturing", cuStreamIsCapturing, stream, &status);
  say("%d; ", (int)status);
  R("end", cuStreamEndCapture, stream, &captured);
  say("graph=%s; ", captured ? "some" : "null");
  MUST(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  R("upload", cuGraphUpload, exec, stream);
  R("end", cuStreamEndCapture, stream, &captured);
}
QUESTION(more_missing_functions) {
  CUresult (*const oldest)(const char*, void**, int, cuuint64_t) =
      (CUresult(*)(const char*, void**, int, cuuint64_t))find_function("cuGetProcAddress");
  void* found = (void*)8;
  R("init", cuInit, 0);
  say_result("v1", oldest("cuNoSuchFunction", &found, 13000, 0));
  say("found=%s; ", found == NULL ? "null" : found == (void*)8 ? "kept" : "some");
  found = (void*)8;
  say_result("v1_too_old", oldest("cuMemAllocAsync", &found, 10000, 0));
  say("found=%s; ", found == NULL ? "null" : found == (void*)8 ? "kept" : "some");
  found = (void*)8;
  R("v2", cuGetProcAddress, "cuNoSuchFunction", &found, 13000, 0, NULL);
  say("found=%s; ", found == NULL ? "null" : found == (void*)8 ? "kept" : "some");
  found = (void*)8;
  R("v2_too_old", cuGetProcAddress, "cuMemAllocAsync", &found, 10000, 0, NULL);
  say("found=%s; ", found == NULL ? "null" : found == (void*)8 ? "kept" : "some");
}
static CUgraph graph_with_condition(CUgraph* body) {
  CUgraph graph;
  CUgraphConditionalHandle handle;
  MUST(cuGraphCreate, &graph, 0);
  MUST(cuGraphConditionalHandleCreate, &handle, graph, primary, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                              .conditional = {handle, CU_GRAPH_COND_TYPE_IF, 1, NULL, primary}};
  CUgraphNode node;
  MUST(cuGraphAddNode, &node, graph, NULL, NULL, 0, &params);
  *body = params.conditional.phGraph_out[0];
  return graph;
}
static void run_condition(const char* label, CUgraph graph) {
  CUgraphExec exec;
  const CUresult made = CU(cuGraphInstantiateWithFlags)(&exec, graph, 0);
  say_result(label, made);
  if (made != CUDA_SUCCESS) return;
  R("launch", cuGraphLaunch, exec, NULL);
  R("sync", cuCtxSynchronize);
}
static void in_body(void* nothing) { (void)nothing; }
QUESTION(more_bodies_with_host_nodes) {
  start_without_module();
  CUgraph body, graph = graph_with_condition(&body);
  CUDA_HOST_NODE_PARAMS host = {.fn = in_body};
  CUgraphNode node;
  R("add", cuGraphAddHostNode, &node, body, NULL, 0, &host);
  run_condition("instantiate", graph);
}
QUESTION(more_bodies_with_events) {
  start_without_module();
  CUgraph body, graph = graph_with_condition(&body);
  CUevent event;
  CUgraphNode node;
  MUST(cuEventCreate, &event, 0);
  R("add_record", cuGraphAddEventRecordNode, &node, body, NULL, 0, event);
  R("add_wait", cuGraphAddEventWaitNode, &node, body, NULL, 0, event);
  run_condition("instantiate", graph);
}
QUESTION(more_bodies_with_graphs_of_host_nodes) {
  start_without_module();
  CUgraph body, child, graph = graph_with_condition(&body);
  CUDA_HOST_NODE_PARAMS host = {.fn = in_body};
  CUgraphNode node;
  MUST(cuGraphCreate, &child, 0);
  MUST(cuGraphAddHostNode, &node, child, NULL, 0, &host);
  R("add", cuGraphAddChildGraphNode, &node, body, NULL, 0, child);
  run_condition("instantiate", graph);
}
QUESTION(more_bodies_with_memory_nodes) {
  start_without_module();
  CUgraph body, graph = graph_with_condition(&body);
  CUDA_MEM_ALLOC_NODE_PARAMS memory = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
      .bytesize = 64};
  CUgraphNode node;
  R("add", cuGraphAddMemAllocNode, &node, body, NULL, 0, &memory);
  run_condition("instantiate", graph);
}
static CUgraph two_empty_nodes(CUgraphNode nodes[2], int depends) {
  CUgraph graph;
  MUST(cuGraphCreate, &graph, 0);
  MUST(cuGraphAddEmptyNode, &nodes[0], graph, NULL, 0);
  MUST(cuGraphAddEmptyNode, &nodes[1], graph, nodes, (size_t)depends);
  return graph;
}
QUESTION(more_update_of_another_shape) {
  start_without_module();
  CUgraphNode nodes[2], others[2];
  const CUgraph graph = two_empty_nodes(nodes, 1), other = two_empty_nodes(others, 0);
  CUgraphExec exec;
  MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
  CUgraphExecUpdateResultInfo info = {0};
  R("update", cuGraphExecUpdate, exec, other, &info);
  say("result=%d; ", (int)info.result);
  const CUgraphNode known[] = {NULL, nodes[0], nodes[1], others[0], others[1]};
  const char* const names[] = {"null", "old_first", "old_second", "new_first", "new_second"};
  for (int i = 0; i < 5; ++i)
    if (info.errorNode == known[i]) say("node=%s; ", names[i]);
  for (int i = 0; i < 5; ++i)
    if (info.errorFromNode == known[i]) say("from=%s; ", names[i]);
}
QUESTION(more_edges_with_data) {
  start();
  CUgraph graph;
  CUgraphNode nodes[2];
  MUST(cuGraphCreate, &graph, 0);
  CUDA_KERNEL_NODE_PARAMS kernel = {
      .func = function("nothing"), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
  MUST(cuGraphAddKernelNode, &nodes[0], graph, NULL, 0, &kernel);
  MUST(cuGraphAddKernelNode, &nodes[1], graph, NULL, 0, &kernel);
  CUgraphEdgeData data = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
  CUgraphEdgeData none = {0};
  R("add", cuGraphAddDependencies, graph, &nodes[0], &nodes[1], &data, 1);
  R("remove_other", cuGraphRemoveDependencies, graph, &nodes[0], &nodes[1], &none, 1);
  R("remove_null", cuGraphRemoveDependencies, graph, &nodes[0], &nodes[1], NULL, 1);
  R("remove", cuGraphRemoveDependencies, graph, &nodes[0], &nodes[1], &data, 1);
  R("add_plain", cuGraphAddDependencies, graph, &nodes[0], &nodes[1], NULL, 1);
  R("add_second", cuGraphAddDependencies, graph, &nodes[0], &nodes[1], &data, 1);
  size_t count = 77;
  R("edges", cuGraphGetEdges, graph, NULL, NULL, NULL, &count);
  say("%zu; ", count);
}
QUESTION(more_maps_of_parts) {
  start_without_module();
  enum { kPiece = 2 << 20 };
  CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  CUmemGenericAllocationHandle two, one;
  CUdeviceptr at;
  MUST(cuMemCreate, &two, 2 * kPiece, &on_device, 0);
  MUST(cuMemCreate, &one, kPiece, &on_device, 0);
  MUST(cuMemAddressReserve, &at, 4 * kPiece, 0, 0, 0);
  R("first_half", cuMemMap, at, kPiece, 0, two, 0);
  R("odd_address", cuMemMap, at + 4096, kPiece, 0, one, 0);
  R("odd_address_half", cuMemMap, at + 4096, kPiece, 0, two, 0);
  R("unreserved", cuMemMap, device_memory(kPiece), kPiece, 0, one, 0);
  R("past_end", cuMemMap, at + 3 * (CUdeviceptr)kPiece, 2 * kPiece, 0, two, 0);
  R("map", cuMemMap, at, 2 * kPiece, 0, two, 0);
  R("overlap_half", cuMemMap, at, kPiece, 0, two, 0);
  R("overlap", cuMemMap, at + kPiece, kPiece, 0, one, 0);
}
QUESTION(more_sizes_that_overflow) {
  start_without_module();
  CUdeviceptr pointer;
  size_t pitch;
  R("height_2^60", cuMemAllocPitch, &pointer, &pitch, 512, (size_t)1 << 60, 4);
  R("height_2^54", cuMemAllocPitch, &pointer, &pitch, 512, (size_t)1 << 54, 4);
  R("height_2^40", cuMemAllocPitch, &pointer, &pitch, 512, (size_t)1 << 40, 4);
  R("width_2^40", cuMemAllocPitch, &pointer, &pitch, (size_t)1 << 40, 1, 4);
  R("alloc_2^63", cuMemAlloc, &pointer, (size_t)1 << 63);
  R("alloc_all", cuMemAlloc, &pointer, ~(size_t)0);
}
QUESTION(more_attributes_of_unknown_pointers) {
  start_without_module();
  static uint64_t memory[2];
  for (int attribute = 1; attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE; ++attribute) {
    uint64_t value[2] = {0x7777777777777777, 0x7777777777777777};
    CUpointer_attribute which = (CUpointer_attribute)attribute;
    void* data = value;
    say("%d:%d", attribute, (int)CU(cuPointerGetAttributes)(1, &which, &data, (CUdeviceptr)memory));
    if (value[0] == 0x7777777777777777)
      say(",kept; ");
    else if (value[0] == (uint64_t)(uintptr_t)memory)
      say(",itself; ");
    else
      say(",%llx; ", (unsigned long long)value[0]);
  }
}
QUESTION(more_value_operations_of_the_first_version) {
  start_without_module();
  CUresult (*const batch)(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned) =
      (CUresult(*)(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned))find_function("cuStreamBatchMemOp");
  CUresult (*const wait)(CUstream, CUdeviceptr, cuuint32_t, unsigned) =
      (CUresult(*)(CUstream, CUdeviceptr, cuuint32_t, unsigned))find_function("cuStreamWaitValue32");
  CUresult (*const write)(CUstream, CUdeviceptr, cuuint32_t, unsigned) =
      (CUresult(*)(CUstream, CUdeviceptr, cuuint32_t, unsigned))find_function("cuStreamWriteValue32");
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr memory = device_memory(64);
  int supported = 77;
  R("attribute", cuDeviceGetAttribute, &supported, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, device);
  say("%d; ", supported);
  R("attribute_nor", cuDeviceGetAttribute, &supported, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, device);
  say("%d; ", supported);
  say_result("write", write(stream, memory, 1, 0));
  say_result("wait", wait(stream, memory, 1, CU_STREAM_WAIT_VALUE_GEQ));
  R("wait_nor", cuStreamWaitValue32, stream, memory, 0xfffffff0, CU_STREAM_WAIT_VALUE_NOR);
  CUstreamBatchMemOpParams operation = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = memory, .value = 2}};
  say_result("batch", batch(stream, 1, &operation, 0));
  MUST(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  say_result("captured_batch", batch(stream, 1, &operation, 0));
  CUgraph graph = NULL;
  R("end", cuStreamEndCapture, stream, &graph);
}
QUESTION(more_stream_attributes) {
  start_without_module();
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  for (int which = 0; which < 12; ++which) {
    CUstreamAttrValue value;
    memset(&value, 0x77, sizeof value);
    const CUresult result = CU(cuStreamGetAttribute)(stream, (CUstreamAttrID)which, &value);
    say("%d:%d", which, (int)result);
    say(result == CUDA_SUCCESS ? ",%x; " : "; ", *(const unsigned*)&value);
  }
  CUstreamAttrValue policy = {.syncPolicy = CU_SYNC_POLICY_YIELD};
  R("set", cuStreamSetAttribute, stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &policy);
  R("get", cuStreamGetAttribute, stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &policy);
  say("%d; ", (int)policy.syncPolicy);
}
