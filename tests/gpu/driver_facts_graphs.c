/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about graphs and the capture of streams. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver_facts.h"

/* Calls that a capture may forbid; each asks in a capture of its own. */
static const char* const kForbidden[] = {"alloc",
                                         "free",
                                         "stream_sync",
                                         "stream_query",
                                         "ctx_sync",
                                         "event_query",
                                         "event_sync",
                                         "copy_sync",
                                         "set_sync",
                                         "stream_create",
                                         "module_load",
                                         "alloc_host",
                                         "legacy_launch",
                                         "legacy_sync",
                                         "event_create",
                                         "module_unload",
                                         "stream_destroy_other",
                                         "copy_pageable",
                                         "event_query_captured",
                                         "event_sync_captured",
                                         "query_other",
                                         "sync_other",
                                         "alloc_async",
                                         "host_function",
                                         "callback",
                                         "mem_info",
                                         "register",
                                         "get_function",
                                         "write_value",
                                         "legacy_event_record",
                                         "set_limit",
                                         "stream_destroy"};
enum { kForbiddenCount = sizeof kForbidden / sizeof *kForbidden };
static void host_nothing(void* data) { (void)data; }
static void callback_nothing(CUstream s, CUresult r, void* data) { (void)s, (void)r, (void)data; }

static CUfunction nothing;
static CUresult forbidden_call(int call, CUstream captured, CUstream other, CUdeviceptr memory, CUevent event,
                               CUevent inside) {
  CUdeviceptr more;
  CUstream made;
  CUmodule module;
  CUfunction f;
  CUevent event_made;
  void* host;
  size_t size, total;
  static unsigned word, words[16];
  switch (call) {
    case 0:
      return CU(cuMemAlloc)(&more, 16);
    case 1:
      return CU(cuMemFree)(memory);
    case 2:
      return CU(cuStreamSynchronize)(captured);
    case 3:
      return CU(cuStreamQuery)(captured);
    case 4:
      return CU(cuCtxSynchronize)();
    case 5:
      return CU(cuEventQuery)(event);
    case 6:
      return CU(cuEventSynchronize)(event);
    case 7:
      return CU(cuMemcpyDtoH)(&word, memory, 4);
    case 8:
      return CU(cuMemsetD8)(memory, 1, 4);
    case 9:
      return CU(cuStreamCreate)(&made, 0);
    case 10:
      return CU(cuModuleLoadData)(&module, ".version 8.0\n.target sm_80\n.address_size 64\n");
    case 11:
      return CU(cuMemAllocHost)(&host, 64);
    case 12:
      return launch(NULL, nothing, NULL);
    case 13:
      return CU(cuStreamSynchronize)(NULL);
    case 14:
      return CU(cuEventCreate)(&event_made, 0);
    case 15:
      return CU(cuModuleUnload)(base);
    case 16:
      return CU(cuStreamDestroy)(other);
    case 17:
      return CU(cuMemcpyHtoDAsync)(memory, words, 64, captured);
    case 18:
      return CU(cuEventQuery)(inside);
    case 19:
      return CU(cuEventSynchronize)(inside);
    case 20:
      return CU(cuStreamQuery)(other);
    case 21:
      return CU(cuStreamSynchronize)(other);
    case 22:
      return CU(cuMemAllocAsync)(&more, 16, captured);
    case 23:
      return CU(cuLaunchHostFunc)(captured, host_nothing, NULL);
    case 24:
      return CU(cuStreamAddCallback)(captured, callback_nothing, NULL, 0);
    case 25:
      return CU(cuMemGetInfo)(&size, &total);
    case 26:
      return CU(cuMemHostRegister)(aligned_alloc(4096, 4096), 4096, 0);
    case 27:
      return CU(cuModuleGetFunction)(&f, base, "nothing");
    case 28:
      return CU(cuStreamWriteValue32)(captured, memory, 1, 0);
    case 29:
      return CU(cuEventRecord)(event, NULL);
    case 30:
      return CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 2048);
    case 31:
      return CU(cuStreamDestroy)(captured);
  }
  return CUDA_ERROR_UNKNOWN;
}
static void ask_forbidden(CUstreamCaptureMode mode, unsigned flags) {
  start();
  for (int call = 0; call < kForbiddenCount; ++call) {
    CUstream captured = new_stream(flags), other = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr memory = device_memory(64);
    CUevent event, inside;
    CUgraph graph = NULL;
    MUST(cuModuleLoadData, &base,
         ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n");
    nothing = function("nothing");
    MUST(cuEventCreate, &event, 0);
    MUST(cuEventCreate, &inside, 0);
    MUST(cuEventRecord, event, NULL);
    MUST(cuCtxSynchronize);
    MUST(cuStreamBeginCapture, captured, mode);
    MUST(cuEventRecord, inside, captured);
    const CUresult result = forbidden_call(call, captured, other, memory, event, inside);
    const CUresult end = CU(cuStreamEndCapture)(captured, &graph);
    say("%s=%d,%d ", kForbidden[call], result, end);
  }
}
QUESTION(capture_forbidden_global) { ask_forbidden(CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_NON_BLOCKING); }
QUESTION(capture_forbidden_thread) {
  ask_forbidden(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_NON_BLOCKING);
}
QUESTION(capture_forbidden_relaxed) { ask_forbidden(CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_NON_BLOCKING); }
QUESTION(capture_forbidden_relaxed_blocking) {
  ask_forbidden(CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_DEFAULT);
}

static CUstream thread_stream;
static void* end_capture(void* nothing) {
  CUgraph graph = NULL;
  MUST(cuCtxSetCurrent, primary);
  CUdeviceptr memory;
  R("thread_alloc", cuMemAlloc, &memory, 16);
  R("thread_sync", cuCtxSynchronize);
  R("thread_end", cuStreamEndCapture, thread_stream, &graph);
  return nothing;
}
static void capture_on_thread(CUstreamCaptureMode mode) {
  start_without_module();
  thread_stream = new_stream(CU_STREAM_NON_BLOCKING);
  MUST(cuStreamBeginCapture, thread_stream, mode);
  pthread_t thread;
  pthread_create(&thread, NULL, end_capture, NULL);
  pthread_join(thread, NULL);
  CUgraph graph = NULL;
  R("end", cuStreamEndCapture, thread_stream, &graph);
}
QUESTION(capture_thread_global) { capture_on_thread(CU_STREAM_CAPTURE_MODE_GLOBAL); }
QUESTION(capture_thread_local) { capture_on_thread(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); }
QUESTION(capture_thread_relaxed) { capture_on_thread(CU_STREAM_CAPTURE_MODE_RELAXED); }
QUESTION(capture_rules) {
  start();
  CUgraph graph = (CUgraph)8;
  CUstream first = new_stream(CU_STREAM_NON_BLOCKING), second = new_stream(CU_STREAM_NON_BLOCKING);
  CUevent event, joined;
  MUST(cuEventCreate, &event, 0);
  MUST(cuEventCreate, &joined, 0);
  R("begin_null", cuStreamBeginCapture, NULL, CU_STREAM_CAPTURE_MODE_RELAXED);
  R("begin_legacy", cuStreamBeginCapture, CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED);
  R("begin_per_thread", cuStreamBeginCapture, CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED);
  R("end_per_thread", cuStreamEndCapture, CU_STREAM_PER_THREAD, &graph);
  R("mode_9", cuStreamBeginCapture, first, (CUstreamCaptureMode)9);
  R("end_without", cuStreamEndCapture, first, &graph);
  MUST(cuStreamBeginCapture, first, CU_STREAM_CAPTURE_MODE_RELAXED);
  R("begin_again", cuStreamBeginCapture, first, CU_STREAM_CAPTURE_MODE_RELAXED);
  R("end", cuStreamEndCapture, first, &graph);
  say("graph=%s; ", graph ? "some" : "null");
  MUST(cuStreamBeginCapture, first, CU_STREAM_CAPTURE_MODE_RELAXED);
  MUST(cuEventRecord, event, first);
  MUST(cuStreamWaitEvent, second, event, 0);
  R("end_other", cuStreamEndCapture, second, &graph);
  R("end_own", cuStreamEndCapture, first, &graph);
  say("graph=%s; ", graph ? "some" : "null");
  MUST(cuStreamBeginCapture, first, CU_STREAM_CAPTURE_MODE_RELAXED);
  MUST(cuEventRecord, event, first);
  MUST(cuStreamWaitEvent, second, event, 0);
  say_result("launch_forked", launch(second, function("nothing"), NULL));
  R("end_unjoined", cuStreamEndCapture, first, &graph);
  say("graph=%s; ", graph ? "some" : "null");
  CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
  R("status_of_forked", cuStreamIsCapturing, second, &status);
  say("%d; ", status);
  R("event_after", cuEventQuery, event);
  R("wait_after", cuStreamWaitEvent, second, event, 0);
  MUST(cuStreamBeginCapture, first, CU_STREAM_CAPTURE_MODE_RELAXED);
  MUST(cuEventRecord, event, first);
  MUST(cuStreamWaitEvent, second, event, 0);
  R("begin_forked", cuStreamBeginCapture, second, CU_STREAM_CAPTURE_MODE_RELAXED);
  MUST(cuEventRecord, joined, second);
  MUST(cuStreamWaitEvent, first, joined, 0);
  R("end_joined_empty", cuStreamEndCapture, first, &graph);
  size_t count = 77;
  R("nodes", cuGraphGetNodes, graph, NULL, &count);
  say("%zu; ", count);
  R("elapsed_captured", cuEventElapsedTime, &(float){0}, event, joined);
}
QUESTION(capture_merging) {
  start_without_module();
  CUgraph graph = NULL;
  CUstream first = new_stream(CU_STREAM_NON_BLOCKING), second = new_stream(CU_STREAM_NON_BLOCKING);
  CUevent event, outside;
  MUST(cuEventCreate, &event, 0);
  MUST(cuEventCreate, &outside, 0);
  MUST(cuEventRecord, outside, second);
  MUST(cuStreamBeginCapture, first, CU_STREAM_CAPTURE_MODE_RELAXED);
  R("wait_outside", cuStreamWaitEvent, first, outside, 0);
  R("end", cuStreamEndCapture, first, &graph);
  MUST(cuStreamBeginCapture, first, CU_STREAM_CAPTURE_MODE_RELAXED);
  MUST(cuStreamBeginCapture, second, CU_STREAM_CAPTURE_MODE_RELAXED);
  MUST(cuEventRecord, event, first);
  R("merge", cuStreamWaitEvent, second, event, 0);
  R("end_second", cuStreamEndCapture, second, &graph);
  R("end_first", cuStreamEndCapture, first, &graph);
  MUST(cuStreamBeginCapture, first, CU_STREAM_CAPTURE_MODE_RELAXED);
  MUST(cuEventRecord, event, first);
  R("wait_by_null", cuStreamWaitEvent, NULL, event, 0);
  CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
  R("status", cuStreamIsCapturing, first, &status);
  say("%d; ", status);
  R("end", cuStreamEndCapture, first, &graph);
  CUstream blocking = new_stream(CU_STREAM_DEFAULT);
  MUST(cuStreamBeginCapture, blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
  R("legacy_status", cuStreamIsCapturing, NULL, &status);
  R("legacy_set", cuMemsetD8Async, 0, 1, 0, NULL);
  R("legacy_sync", cuStreamSynchronize, NULL);
  R("status", cuStreamIsCapturing, blocking, &status);
  say("%d; ", status);
  R("end", cuStreamEndCapture, blocking, &graph);
  MUST(cuStreamBeginCapture, first, CU_STREAM_CAPTURE_MODE_RELAXED);
  R("query", cuStreamQuery, first);
  R("set_after_invalid", cuMemsetD8Async, device_memory(16), 1, 16, first);
  R("status", cuStreamIsCapturing, first, &status);
  say("%d; ", status);
  R("end", cuStreamEndCapture, first, &graph);
}

static CUgraphNode add_kernel(CUgraph graph, const char* name, CUgraphNode* before, size_t count,
                              void** parameters) {
  CUDA_KERNEL_NODE_PARAMS values = {.func = function(name),
                                    .gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 1,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = parameters};
  CUgraphNode node;
  MUST(cuGraphAddKernelNode, &node, graph, before, count, &values);
  return node;
}
QUESTION(graph_building) {
  start();
  CUgraph graph, other;
  CUgraphExec exec;
  MUST(cuGraphCreate, &graph, 0);
  MUST(cuGraphCreate, &other, 0);
  R("create_flags_1", cuGraphCreate, &other, 1);
  R("instantiate_empty", cuGraphInstantiateWithFlags, &exec, graph, 0);
  R("launch_empty", cuGraphLaunch, exec, NULL);
  CUgraphNode a = add_kernel(graph, "nothing", NULL, 0, NULL), b = add_kernel(graph, "nothing", &a, 1, NULL),
              c, d;
  R("cycle", cuGraphAddDependencies, graph, &b, &a, NULL, 1);
  R("instantiate_cycle", cuGraphInstantiateWithFlags, &exec, graph, 0);
  R("remove_cycle", cuGraphRemoveDependencies, graph, &b, &a, NULL, 1);
  R("self", cuGraphAddDependencies, graph, &a, &a, NULL, 1);
  R("duplicate_edge", cuGraphAddDependencies, graph, &a, &b, NULL, 1);
  R("remove_missing_edge", cuGraphRemoveDependencies, graph, &b, &a, NULL, 1);
  R("remove_edge", cuGraphRemoveDependencies, graph, &a, &b, NULL, 1);
  R("remove_edge_again", cuGraphRemoveDependencies, graph, &a, &b, NULL, 1);
  CUgraphNode twice[2] = {a, a};
  R("duplicate_dependency", cuGraphAddEmptyNode, &c, graph, twice, 2);
  R("foreign_dependency", cuGraphAddEmptyNode, &c, other, &a, 1);
  R("null_dependencies", cuGraphAddEmptyNode, &c, graph, NULL, 1);
  R("child_itself", cuGraphAddChildGraphNode, &d, graph, NULL, 0, graph);
  R("instantiate", cuGraphInstantiateWithFlags, &exec, graph, 0);
  R("instantiate_flags", cuGraphInstantiateWithFlags, &exec, graph, 0x8000);
  R("destroy_node", cuGraphDestroyNode, b);
  R("launch_after_destroy", cuGraphLaunch, exec, NULL);
  R("destroy_node_again", cuGraphDestroyNode, b);
}
QUESTION(graph_bad_nodes) {
  start();
  CUgraph graph;
  CUgraphNode node;
  MUST(cuGraphCreate, &graph, 0);
  CUDA_KERNEL_NODE_PARAMS kernel = {.func = function("nothing")};
  R("grid_0", cuGraphAddKernelNode, &node, graph, NULL, 0, &kernel);
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY =
      kernel.blockDimZ = 1;
  kernel.blockDimX = 2000;
  R("block_2000", cuGraphAddKernelNode, &node, graph, NULL, 0, &kernel);
  kernel.blockDimX = 1;
  kernel.func = NULL;
  R("no_function", cuGraphAddKernelNode, &node, graph, NULL, 0, &kernel);
  kernel.func = function("store");
  R("no_parameters", cuGraphAddKernelNode, &node, graph, NULL, 0, &kernel);
  CUDA_MEMSET_NODE_PARAMS set = {.dst = 0, .elementSize = 1, .width = 16, .height = 1};
  R("set_null", cuGraphAddMemsetNode, &node, graph, NULL, 0, &set, primary);
  set.dst = device_memory(16);
  set.elementSize = 3;
  R("set_element_3", cuGraphAddMemsetNode, &node, graph, NULL, 0, &set, primary);
  set.elementSize = 1;
  set.width = 0;
  R("set_width_0", cuGraphAddMemsetNode, &node, graph, NULL, 0, &set, primary);
  set.width = 17;
  R("set_past", cuGraphAddMemsetNode, &node, graph, NULL, 0, &set, primary);
  set.width = 16;
  R("set_no_context", cuGraphAddMemsetNode, &node, graph, NULL, 0, &set, NULL);
  CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                        .srcDevice = 0,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = set.dst,
                        .WidthInBytes = 16,
                        .Height = 1,
                        .Depth = 1};
  R("copy_null", cuGraphAddMemcpyNode, &node, graph, NULL, 0, &copy, primary);
  CUDA_HOST_NODE_PARAMS host = {0};
  R("host_null", cuGraphAddHostNode, &node, graph, NULL, 0, &host);
  R("event_null", cuGraphAddEventRecordNode, &node, graph, NULL, 0, NULL);
}
QUESTION(graph_update) {
  start();
  CUdeviceptr memory = device_memory(64);
  unsigned value = 1;
  void* parameters[] = {&memory, &value};
  CUgraph graph, changed;
  CUgraphExec exec;
  CUgraphExecUpdateResultInfo info;
  MUST(cuGraphCreate, &graph, 0);
  CUgraphNode first = add_kernel(graph, "store", NULL, 0, parameters);
  add_kernel(graph, "store", &first, 1, parameters);
  MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
  R("same", cuGraphExecUpdate, exec, graph, &info);
  say("%d; ", info.result);
  MUST(cuGraphCreate, &changed, 0);
  CUgraphNode node = add_kernel(changed, "nothing", NULL, 0, NULL);
  add_kernel(changed, "store", &node, 1, parameters);
  R("function_changed", cuGraphExecUpdate, exec, changed, &info);
  say("%d; ", info.result);
  MUST(cuGraphCreate, &changed, 0);
  add_kernel(changed, "store", NULL, 0, parameters);
  add_kernel(changed, "store", NULL, 0, parameters);
  R("topology", cuGraphExecUpdate, exec, changed, &info);
  say("%d error_node=%s; ", info.result, info.errorNode ? "some" : "null");
  MUST(cuGraphCreate, &changed, 0);
  add_kernel(changed, "store", NULL, 0, parameters);
  R("fewer", cuGraphExecUpdate, exec, changed, &info);
  say("%d; ", info.result);
  MUST(cuGraphCreate, &changed, 0);
  MUST(cuGraphAddEmptyNode, &node, changed, NULL, 0);
  add_kernel(changed, "store", &node, 1, parameters);
  R("type", cuGraphExecUpdate, exec, changed, &info);
  say("%d; ", info.result);
  static unsigned host[16];
  CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                        .srcDevice = memory,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = memory + 32,
                        .WidthInBytes = 16,
                        .Height = 1,
                        .Depth = 1};
  MUST(cuGraphCreate, &graph, 0);
  MUST(cuGraphAddMemcpyNode, &node, graph, NULL, 0, &copy, primary);
  MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
  copy.WidthInBytes = 8;
  R("copy_width", cuGraphExecMemcpyNodeSetParams, exec, node, &copy, primary);
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host;
  R("copy_kind", cuGraphExecMemcpyNodeSetParams, exec, node, &copy, primary);
  copy.Height = 2;
  copy.WidthInBytes = 4;
  copy.dstPitch = copy.srcPitch = 4;
  R("copy_2d", cuGraphExecMemcpyNodeSetParams, exec, node, &copy, primary);
  MUST(cuGraphCreate, &graph, 0);
  CUDA_MEMSET_NODE_PARAMS set = {.dst = memory, .elementSize = 1, .width = 16, .height = 1};
  MUST(cuGraphAddMemsetNode, &node, graph, NULL, 0, &set, primary);
  MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
  set.width = 8;
  R("set_width", cuGraphExecMemsetNodeSetParams, exec, node, &set, primary);
  set.elementSize = 4;
  set.width = 2;
  R("set_element", cuGraphExecMemsetNodeSetParams, exec, node, &set, primary);
  set.height = 2;
  set.pitch = 16;
  R("set_2d", cuGraphExecMemsetNodeSetParams, exec, node, &set, primary);
}
QUESTION(graph_launch_twice) {
  start();
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
  CUgraph graph;
  CUgraphExec exec;
  MUST(cuGraphCreate, &graph, 0);
  add_kernel(graph, "nothing", NULL, 0, NULL);
  MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
  spin(stream);
  WAITS("launch", cuGraphLaunch, exec, stream);
  WAITS("launch_other_stream", cuGraphLaunch, exec, other);
  R("query_other", cuStreamQuery, other);
  WAITS("sync_other", cuStreamSynchronize, other);
  WAITS("destroy", cuGraphExecDestroy, exec);
  stop_spinning();
  R("sync", cuCtxSynchronize);
}
QUESTION(graph_memory_nodes) {
  start_without_module();
  CUgraph graph, clone;
  CUgraphExec exec, second;
  CUgraphNode node, free_node;
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  MUST(cuGraphCreate, &graph, 0);
  CUDA_MEM_ALLOC_NODE_PARAMS memory = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
      .bytesize = 64};
  R("add", cuGraphAddMemAllocNode, &node, graph, NULL, 0, &memory);
  R("clone", cuGraphClone, &clone, graph);
  R("instantiate", cuGraphInstantiateWithFlags, &exec, graph, 0);
  R("instantiate_second", cuGraphInstantiateWithFlags, &second, graph, 0);
  R("free_before_launch", cuMemFreeAsync, memory.dptr, stream);
  R("launch", cuGraphLaunch, exec, stream);
  R("launch_again_unfreed", cuGraphLaunch, exec, stream);
  R("set", cuMemsetD8Async, memory.dptr, 1, 64, stream);
  R("free", cuMemFreeAsync, memory.dptr, stream);
  R("launch_again", cuGraphLaunch, exec, stream);
  R("sync_free", cuMemFree, memory.dptr);
  R("destroy_node", cuGraphDestroyNode, node);
  R("destroy_exec", cuGraphExecDestroy, exec);
  MUST(cuGraphCreate, &graph, 0);
  R("add", cuGraphAddMemAllocNode, &node, graph, NULL, 0, &memory);
  R("add_free_undepending", cuGraphAddMemFreeNode, &free_node, graph, NULL, 0, memory.dptr);
  R("add_free", cuGraphAddMemFreeNode, &free_node, graph, &node, 1, memory.dptr);
  R("add_free_again", cuGraphAddMemFreeNode, &free_node, graph, &node, 1, memory.dptr);
  R("instantiate", cuGraphInstantiateWithFlags, &exec, graph, 0);
  R("launch", cuGraphLaunch, exec, stream);
  R("launch", cuGraphLaunch, exec, stream);
  R("free_plain", cuGraphAddMemFreeNode, &free_node, graph, NULL, 0, device_memory(16));
  memory.bytesize = 0;
  R("add_0", cuGraphAddMemAllocNode, &node, graph, NULL, 0, &memory);
  R("sync", cuCtxSynchronize);
}
