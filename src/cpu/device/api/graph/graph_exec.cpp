// SPDX-License-Identifier: Apache-2.0
// Executable graphs.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>
#include <utility>

#include "cpu/device/graph/capture.hpp"
#include "cpu/device/graph/exec.hpp"

using namespace quern::cpu::device;
using quern::base::LockGuard;

namespace {

/// A handle for an instance of the graph. `failure` may be null.
CUresult make_exec(CUgraphExec* handle, CUgraph graph, std::uint64_t flags, InstantiateFailure& failure) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(handle != nullptr);
    refuse_unsafe_call();
    std::shared_ptr<GraphExec> exec;  // destroyed after the lock
    const LockGuard lock(graph_mutex());
    exec = instantiate(driver, driver.find(graph), flags, failure);
    *handle = driver.add(exec);
  });
}

CUresult make_exec(CUgraphExec* handle, CUgraph graph, CUgraphNode* error_node, char* log,
                   std::size_t bytes) {
  if (log != nullptr && bytes > 0) *log = '\0';
  InstantiateFailure failure;
  const CUresult result = make_exec(handle, graph, 0, failure);
  if (error_node != nullptr) *error_node = failure.node;
  return result;
}

CUresult update_exec(CUgraphExec handle, CUgraph graph, CUgraphExecUpdateResultInfo& info) {
  return entry([&] {
    Driver& driver = Driver::get();
    std::vector<NodeContents> replaced;  // destroyed after the lock
    Detached detached;
    const LockGuard lock(graph_mutex());
    const auto exec = driver.find(handle);
    const auto its_graph = driver.find(graph);
    detached = detach_from_launch(driver, *exec);
    info = update(*exec->graph, *its_graph, replaced);
    require(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  });
}

/// The kinds of nodes that can be disabled.
bool can_be_disabled(const GraphNode& node) {
  return std::holds_alternative<KernelNode>(node.contents) ||
         std::holds_alternative<CopyNode>(node.contents) || std::holds_alternative<FillNode>(node.contents);
}

}  // namespace

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                            std::size_t bytes) {
  return make_exec(exec, graph, error_node, log, bytes);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                               std::size_t bytes) {
  return make_exec(exec, graph, error_node, log, bytes);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  InstantiateFailure failure;
  // There is no stream for the upload.
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0)
    return entry([] { Driver::get(), fail(CUDA_ERROR_INVALID_VALUE); });
  return make_exec(exec, graph, flags, failure);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(params != nullptr);
    if ((params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0)
      driver.stream_of(params->hUploadStream);  // a bad stream is an error
    InstantiateFailure failure;
    const CUresult result = make_exec(exec, graph, params->flags, failure);
    params->result_out = failure.result;
    params->hErrNode_out = failure.node;
    return result;
  });
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(flags != nullptr);
    const LockGuard lock(graph_mutex());
    *flags = driver.find(exec)->flags;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return entry([&] {
    std::shared_ptr<GraphExec> exec;  // destroyed after the lock
    const LockGuard lock(graph_mutex());
    exec = Driver::get().remove(handle);
  });
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    driver.find(exec);
    refuse_capturing(its_stream);  // nothing is uploaded here
  });
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    refuse_capturing(its_stream);  // as on a GPU: no child graph is made of it
    const auto exec = driver.find(handle);
    const LockGuard lock(graph_mutex());
    launch(driver, exec, its_stream.stream);
  });
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                           CUgraphExecUpdateResult* result) {
  if (error_node == nullptr || result == nullptr)
    return entry([] { Driver::get(), fail(CUDA_ERROR_INVALID_VALUE); });
  CUgraphExecUpdateResultInfo info{};
  info.result = CU_GRAPH_EXEC_UPDATE_ERROR;
  const CUresult updated = update_exec(exec, graph, info);
  *error_node = info.errorNode;
  *result = info.result;
  return updated;
}
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* result) {
  if (result == nullptr) return entry([] { Driver::get(), fail(CUDA_ERROR_INVALID_VALUE); });
  *result = {};
  result->result = CU_GRAPH_EXEC_UPDATE_ERROR;
  return update_exec(exec, graph, *result);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph graph) {
  return entry([&] {
    Driver& driver = Driver::get();
    std::vector<NodeContents> replaced;  // destroyed after the lock
    Detached detached;
    const LockGuard lock(graph_mutex());
    const auto its_exec = driver.find(exec);
    const auto its_node = driver.find(node);
    const auto its_graph = driver.find(graph);
    detached = detach_from_launch(driver, *its_exec);
    const auto* const child = std::get_if<ChildNode>(&counterpart(*its_exec, *its_node).contents);
    require(child != nullptr);
    const auto info = update(*child->graph, *its_graph, replaced);
    require(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  });
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  return entry([&] {
    Driver& driver = Driver::get();
    Detached detached;  // destroyed after the lock
    const LockGuard lock(graph_mutex());
    const auto its_exec = driver.find(exec);
    const auto original = driver.find(node);
    detached = detach_from_launch(driver, *its_exec);
    GraphNode& its_node = counterpart(*its_exec, *original);
    require(can_be_disabled(its_node) && enabled <= 1);
    its_node.enabled = enabled != 0;
  });
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(enabled != nullptr);
    const LockGuard lock(graph_mutex());
    const auto its_exec = driver.find(exec);
    const GraphNode& its_node = counterpart(*its_exec, *driver.find(node));
    require(can_be_disabled(its_node));
    *enabled = its_node.enabled ? 1 : 0;
  });
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  return entry([&] { Driver::get().device(device); });  // memory is given back with its graph
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    require(value != nullptr);
    *static_cast<cuuint64_t*>(value) = graph_memory_attribute(driver, ordinal, attribute);
  });
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    require(value != nullptr && *static_cast<const cuuint64_t*>(value) == 0);
    reset_graph_memory_high(driver, ordinal, attribute);
  });
}
