// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

namespace quern::fuzz {

void Machine::call_capture() {
  const CUstream on = stream();
  switch (input_.below(7)) {
    case 0:
      cuStreamBeginCapture_v2(on, mode());
      return;
    case 1: {
      const std::vector<CUgraphNode> after = nodes();
      cuStreamBeginCaptureToGraph(on, any(graphs_), after.data(), nullptr, after.size(), mode());
      return;
    }
    case 2: {
      CUgraph graph = nullptr;
      if (cuStreamEndCapture(on, &graph) == CUDA_SUCCESS) graphs_.add(graph);
      return;
    }
    case 3: {
      CUstreamCaptureStatus status{};
      cuuint64_t id = 0;
      CUgraph graph = nullptr;
      const CUgraphNode* last = nullptr;
      std::size_t count = 0;
      if (cuStreamGetCaptureInfo_v2(on, &status, &id, &graph, &last, &count) == CUDA_SUCCESS &&
          status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        graphs_.add(graph);
        for (std::size_t i = 0; i < count; ++i) nodes_.add(last[i]);
      }
      return;
    }
    case 4: {
      std::vector<CUgraphNode> chosen = nodes();
      cuStreamUpdateCaptureDependencies(on, chosen.data(), chosen.size(),
                                        static_cast<unsigned>(input_.below(3)));
      return;
    }
    case 5:
      cuStreamSynchronize(on);
      return;
    default: {
      CUstreamCaptureMode exchanged = mode();
      cuThreadExchangeStreamCaptureMode(&exchanged);
    }
  }
}

void Machine::add_to_graph() {
  const CUgraph graph = any(graphs_);
  const std::vector<CUgraphNode> after = nodes();
  const CUgraphNode* const list = input_.rarely() ? nullptr : after.data();
  const std::size_t count = after.size();
  CUgraphNode node = nullptr;
  switch (input_.below(13)) {
    case 0:
      return nodes_.add_if(cuGraphAddEmptyNode(&node, graph, list, count), node);
    case 1: {
      const CUDA_KERNEL_NODE_PARAMS params = kernel();
      return nodes_.add_if(cuGraphAddKernelNode_v2(&node, graph, list, count, &params), node);
    }
    case 2: {
      const CUDA_MEMCPY3D params = box();
      return nodes_.add_if(cuGraphAddMemcpyNode(&node, graph, list, count, &params, context_), node);
    }
    case 3: {
      const CUDA_MEMSET_NODE_PARAMS_v1 params = filling();
      return nodes_.add_if(cuGraphAddMemsetNode(&node, graph, list, count, &params, context_), node);
    }
    case 4: {
      const CUDA_HOST_NODE_PARAMS_v1 params{[](void*) {}, nullptr};
      return nodes_.add_if(cuGraphAddHostNode(&node, graph, list, count, &params), node);
    }
    case 5:
      if (++children_ > 8) return;  // each copies a graph: they grow exponentially
      return nodes_.add_if(cuGraphAddChildGraphNode(&node, graph, list, count, any(graphs_)), node);
    case 6:
      return nodes_.add_if(cuGraphAddEventRecordNode(&node, graph, list, count, any(events_)), node);
    case 7:
      return nodes_.add_if(cuGraphAddEventWaitNode(&node, graph, list, count, any(events_)), node);
    case 8: {
      CUDA_MEM_ALLOC_NODE_PARAMS params{};
      params.poolProps.allocType = static_cast<CUmemAllocationType>(input_.below(3));
      params.poolProps.location.type = static_cast<CUmemLocationType>(input_.below(4));
      params.poolProps.location.id = static_cast<int>(input_.below(3));
      params.bytesize = bytes();
      const CUresult result = cuGraphAddMemAllocNode(&node, graph, list, count, &params);
      if (result == CUDA_SUCCESS) pointers_.add(params.dptr);
      return nodes_.add_if(result, node);
    }
    case 9:
      return nodes_.add_if(cuGraphAddMemFreeNode(&node, graph, list, count, address()), node);
    case 10:
      return add_conditional(graph, list, count);
    case 11: {
      if (++children_ > 8) return;
      CUgraphNodeParams params{};
      params.type = CU_GRAPH_NODE_TYPE_GRAPH;
      params.graph.graph = any(graphs_);
      params.graph.ownership = static_cast<CUgraphChildGraphNodeOwnership>(input_.below(3));
      return nodes_.add_if(cuGraphAddNode(&node, graph, list, count, &params), node);
    }
    default: {
      CUstreamBatchMemOpParams operation{};
      operation.operation = input_.below(2) == 0 ? CU_STREAM_MEM_OP_WRITE_VALUE_32 : CU_STREAM_MEM_OP_BARRIER;
      if (operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) operation.writeValue.address = address();
      const CUDA_BATCH_MEM_OP_NODE_PARAMS params{context_, 1, &operation, 0};
      return nodes_.add_if(cuGraphAddBatchMemOpNode(&node, graph, list, count, &params), node);
    }
  }
}

void Machine::add_conditional(CUgraph graph, const CUgraphNode* list, std::size_t count) {
  CUgraphConditionalHandle handle = 0;
  const auto type = static_cast<CUgraphConditionalNodeType>(input_.below(4));
  const unsigned initial = type == CU_GRAPH_COND_TYPE_WHILE ? 0 : static_cast<unsigned>(input_.below(3));
  if (cuGraphConditionalHandleCreate(&handle, graph, context_, initial, 1) != CUDA_SUCCESS) return;
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = input_.rarely() ? memory_ : handle;
  params.conditional.type = type;
  params.conditional.size = static_cast<unsigned>(input_.below(4));
  params.conditional.ctx = context_;
  CUgraphNode node = nullptr;
  if (cuGraphAddNode(&node, graph, list, count, &params) != CUDA_SUCCESS) return;
  nodes_.add(node);
  for (unsigned i = 0; i < params.conditional.size; ++i) graphs_.add(params.conditional.phGraph_out[i]);
}

void Machine::change_graph() {
  const CUgraphNode node = any(nodes_);
  CUgraph graph = nullptr;
  switch (input_.below(11)) {
    case 0:
      if (graphs_.made.size() < 20 && cuGraphCreate(&graph, 0) == CUDA_SUCCESS) graphs_.add(graph);
      return;
    case 1:
      cuGraphDestroy(any(graphs_));
      return;
    case 2:
      if (graphs_.made.size() < 20 && cuGraphClone(&graph, any(graphs_)) == CUDA_SUCCESS) graphs_.add(graph);
      return;
    case 3:
      cuGraphDestroyNode(node);
      return;
    case 4: {
      const CUgraphNode to = any(nodes_);
      cuGraphAddDependencies(any(graphs_), &node, &to, 1);
      return;
    }
    case 5: {
      const CUgraphNode to = any(nodes_);
      cuGraphRemoveDependencies(any(graphs_), &node, &to, 1);
      return;
    }
    case 6: {
      const CUDA_KERNEL_NODE_PARAMS params = kernel();
      cuGraphKernelNodeSetParams_v2(node, &params);
      return;
    }
    case 7: {
      const CUDA_MEMCPY3D params = box();
      cuGraphMemcpyNodeSetParams(node, &params);
      return;
    }
    case 8: {
      const CUDA_MEMSET_NODE_PARAMS_v1 params = filling();
      cuGraphMemsetNodeSetParams(node, &params);
      return;
    }
    case 9:
      cuGraphEventRecordNodeSetEvent(node, any(events_));
      return;
    default: {
      CUkernelNodeAttrValue value{};
      value.cooperative = static_cast<int>(input_.below(3));
      cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
      cuGraphKernelNodeCopyAttributes(any(nodes_), node);
    }
  }
}

void Machine::call_exec() {
  const CUgraphExec exec = any(execs_);
  switch (input_.below(9)) {
    case 0:
    case 1: {
      CUgraphExec made = nullptr;
      if (cuGraphInstantiateWithFlags(&made, any(graphs_), input_.below(10)) == CUDA_SUCCESS)
        execs_.add(made);
      return;
    }
    case 2:
    case 3:
      cuGraphLaunch(exec, stream());
      return;
    case 4:
      cuGraphExecDestroy(exec);
      return;
    case 5: {
      CUgraphExecUpdateResultInfo info{};
      cuGraphExecUpdate_v2(exec, any(graphs_), &info);
      return;
    }
    case 6:
      cuGraphNodeSetEnabled(exec, any(nodes_), static_cast<unsigned>(input_.below(3)));
      return;
    case 7: {
      const CUDA_KERNEL_NODE_PARAMS params = kernel();
      cuGraphExecKernelNodeSetParams_v2(exec, any(nodes_), &params);
      return;
    }
    default:
      cuGraphExecChildGraphNodeSetParams(exec, any(nodes_), any(graphs_));
  }
}

void Machine::ask_graph() {
  const CUgraph graph = any(graphs_);
  const CUgraphNode node = any(nodes_);
  std::array<CUgraphNode, 4> from{}, to{};
  std::size_t count = input_.below(5);
  CUDA_KERNEL_NODE_PARAMS params{};
  CUgraphNodeType type{};
  CUgraph found = nullptr;
  switch (input_.below(10)) {
    case 0:
      cuGraphGetNodes(graph, from.data(), &count);
      for (const CUgraphNode each : from) nodes_.add(each);
      return;
    case 1:
      cuGraphGetEdges(graph, from.data(), to.data(), &count);
      return;
    case 2:
      cuGraphGetRootNodes(graph, input_.below(2) == 0 ? nullptr : from.data(), &count);
      return;
    case 3:
      cuGraphNodeGetDependencies(node, from.data(), &count);
      return;
    case 4:
      cuGraphNodeGetDependentNodes(node, nullptr, &count);
      return;
    case 5:
      cuGraphKernelNodeGetParams_v2(node, &params);
      return;
    case 6:
      cuGraphNodeGetType(node, &type);
      return;
    case 7:
      if (cuGraphChildGraphNodeGetGraph(node, &found) == CUDA_SUCCESS) graphs_.add(found);
      return;
    case 8:
      cuGraphNodeFindInClone(from.data(), node, graph);
      return;
    default:
      cuGraphDebugDotPrint(graph, "/dev/null", input_.word() & 0xffff);
  }
}

void Machine::call_object() {
  CUuserObject object = nullptr;
  const auto count = static_cast<unsigned>(input_.below(4));
  switch (input_.below(6)) {
    case 0:
      if (cuUserObjectCreate(&object, nullptr, [](void*) {}, count, 1) == CUDA_SUCCESS) objects_.add(object);
      return;
    case 1:
      cuUserObjectRetain(any(objects_), count);
      return;
    case 2:
      cuUserObjectRelease(any(objects_), count);
      return;
    case 3:
      cuGraphRetainUserObject(any(graphs_), any(objects_), count, static_cast<unsigned>(input_.below(3)));
      return;
    case 4:
      cuGraphReleaseUserObject(any(graphs_), any(objects_), count);
      return;
    default: {
      CUevent event = any(events_);
      cuEventQuery(event);
      cuEventSynchronize(event);
    }
  }
}

}  // namespace quern::fuzz
