// SPDX-License-Identifier: Apache-2.0
// Graphs: conditional nodes, and kernels that set their conditions.
#include <cstring>
#include <vector>

#include "graph_fixture.hpp"

using namespace quern::conformance;

TEST_CASE_FIXTURE(GraphFixture, "conditional nodes run a body as their value says") {
  const CUdeviceptr words = upload(std::vector<std::uint32_t>(2, 0));
  const auto add = [&](CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned size) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = size;
    params.conditional.ctx = context;
    CUgraphNode node = nullptr;
    REQUIRE(CU(cuGraphAddNode)(&node, graph, nullptr, 0, &params) == CUDA_SUCCESS);
    return std::vector<CUgraph>(params.conditional.phGraph_out, params.conditional.phGraph_out + size);
  };
  const auto chosen = add(condition(1), CU_GRAPH_COND_TYPE_IF, 1);
  count_in(chosen[0], words, 1);
  const auto not_chosen = add(condition(0), CU_GRAPH_COND_TYPE_IF, 2);
  count_in(not_chosen[0], words, 2);
  count_in(not_chosen[1], words, 4);
  const auto cases = add(condition(2), CU_GRAPH_COND_TYPE_SWITCH, 3);
  for (unsigned i = 0; i < 3; ++i) count_in(cases[i], words, 8u << i);
  const auto no_case = add(condition(7), CU_GRAPH_COND_TYPE_SWITCH, 1);
  count_in(no_case[0], words, 64);
  const auto never = add(condition(0), CU_GRAPH_COND_TYPE_WHILE, 1);
  count_in(never[0], words, 128);
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  run(exec, on);
  CHECK(word(words) == 1 + 4 + 32);
  run(exec, on);
  CHECK(word(words) == 2 * (1 + 4 + 32));
  const CUgraphConditionalHandle unused = condition(0);
  CUgraphExec second = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  CHECK(CU(cuGraphInstantiateWithParams)(&second, graph, &params) != CUDA_SUCCESS);
  CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
  add(unused, CU_GRAPH_COND_TYPE_IF, 1);
  CUgraphNodeParams twice{};
  twice.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  twice.conditional = {unused, CU_GRAPH_COND_TYPE_IF, 1, nullptr, context};
  CUgraphNode node = nullptr;
  CHECK(CU(cuGraphAddNode)(&node, graph, nullptr, 0, &twice) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(GraphFixture, "kernels set the condition of a loop") {
  const char* const text = kCountDownModule;
  CUmodule loop_module = nullptr;  // not linked: the driver supplies the function
  REQUIRE(cu().cuModuleLoadData(&loop_module, text) == CUDA_SUCCESS);
  CUlinkState link = nullptr;
  void* image = nullptr;
  REQUIRE(cu().cuLinkCreate_v2(0, nullptr, nullptr, &link) == CUDA_SUCCESS);
  REQUIRE(cu().cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, const_cast<char*>(text), std::strlen(text) + 1,
                                "loop", 0, nullptr, nullptr) == CUDA_SUCCESS);
  // A GPU's linker wants libcudadevrt.a.
  if (is_cpu()) REQUIRE(cu().cuLinkComplete(link, &image, nullptr) == CUDA_SUCCESS);
  CUmodule linked = nullptr;
  if (image != nullptr) REQUIRE(cu().cuModuleLoadData(&linked, image) == CUDA_SUCCESS);
  REQUIRE(cu().cuLinkDestroy(link) == CUDA_SUCCESS);
  CUfunction count_down = nullptr;
  REQUIRE(cu().cuModuleGetFunction(&count_down, loop_module, "count_down") == CUDA_SUCCESS);
  CUdeviceptr left = upload(std::vector<std::uint32_t>{5}), runs = upload(std::vector<std::uint32_t>{0});
  CUgraphConditionalHandle handle = condition(1);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = handle;
  params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
  params.conditional.size = 1;
  params.conditional.ctx = context;
  CUgraphNode node = nullptr;
  REQUIRE(CU(cuGraphAddNode)(&node, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  const CUgraph body = params.conditional.phGraph_out[0];
  const CUgraphNode counted = count_in(body, runs, 1);
  void* parameters[] = {&handle, &left};
  CUDA_KERNEL_NODE_PARAMS setter = kernel("empty", 1, 1, parameters);
  setter.func = count_down;
  REQUIRE(CU(cuGraphAddKernelNode_v2)(&node, body, &counted, 1, &setter) == CUDA_SUCCESS);
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  run(exec, on);
  CHECK(word(runs) == 5);
  REQUIRE(launch("fill", 1, 1, on, left, 1u, 3u) == CUDA_SUCCESS);
  run(exec, on);
  CHECK(word(runs) == 8);
}
