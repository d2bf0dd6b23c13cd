// SPDX-License-Identifier: Apache-2.0
#include "runtime/context/module.hpp"

#include <cstring>
#include <vector>

namespace quern::runtime {
namespace {

constexpr std::size_t kLogBytes = 16384;

int attribute(const Context& context, CUfunction function, CUfunction_attribute which) {
  int value = 0;
  context.check(context.api().cuFuncGetAttribute(&value, which, function), "cuFuncGetAttribute",
                "read an attribute of a kernel");
  return value;
}

}  // namespace

LoadOutcome load_image(const std::shared_ptr<Context>& context, const void* image,
                       std::chrono::nanoseconds launch_timeout) {
  const CurrentContext current(*context);
  std::vector<char> log(kLogBytes, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(kLogBytes)};
  CUmodule handle = nullptr;
  LoadOutcome outcome;
  const auto begin = std::chrono::steady_clock::now();
  outcome.result = context->api().cuModuleLoadDataEx(&handle, image, 2, options, values);
  const auto load_time = std::chrono::steady_clock::now() - begin;
  if (outcome.result == CUDA_SUCCESS)
    outcome.module = std::make_shared<Module>(
        context, handle, context->resources().own(release_of(ResourceKind::module, handle)), launch_timeout,
        load_time);
  outcome.log.assign(log.data(), strnlen(log.data(), log.size()));
  return outcome;
}

CompileTime Module::compile_time(const Function& function) const {
  const QuernCpuPlugin* const plugin = context_->driver().plugin;
  if (plugin == nullptr) return {load_time_, {}};
  const CurrentContext current(*context_);
  QuernCpuCompileTimes times{};
  times.struct_bytes = sizeof times;
  if (plugin->compile_times(function.handle, &times) != 0) return {};  // a fault has ended its context
  return {std::chrono::nanoseconds(times.load_ns), std::chrono::nanoseconds(times.machine_code_ns)};
}

namespace {

/// A link under way, ended with the scope.
class LinkState {
 public:
  explicit LinkState(const driver::DriverTable& api) : api_(api) {}
  ~LinkState() {
    if (handle != nullptr) api_.cuLinkDestroy(handle);
  }
  LinkState(const LinkState&) = delete;
  LinkState& operator=(const LinkState&) = delete;
  CUlinkState handle = nullptr;

 private:
  const driver::DriverTable& api_;
};

CUresult add_and_complete(const driver::DriverTable& api, CUlinkState state,
                          const std::vector<LinkText>& texts, std::vector<char>& image) {
  for (const LinkText& text : texts) {
    const CUresult added = api.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, const_cast<char*>(text.ptx->c_str()),
                                                text.ptx->size() + 1, text.name, 0, nullptr, nullptr);
    if (added != CUDA_SUCCESS) return added;
  }
  void* made = nullptr;
  std::size_t bytes = 0;
  const CUresult completed = api.cuLinkComplete(state, &made, &bytes);
  if (completed == CUDA_SUCCESS)
    image.assign(static_cast<const char*>(made), static_cast<const char*>(made) + bytes);
  return completed;
}

}  // namespace

LinkOutcome link_texts(const std::shared_ptr<Context>& context, const std::vector<LinkText>& texts) {
  const CurrentContext current(*context);
  const driver::DriverTable& api = context->api();
  std::vector<char> log(kLogBytes, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(kLogBytes)};
  LinkState state(api);
  context->check(api.cuLinkCreate_v2(2, options, values, &state.handle), "cuLinkCreate_v2",
                 "begin to link modules");
  LinkOutcome outcome;
  outcome.result = add_and_complete(api, state.handle, texts, outcome.image);
  outcome.log.assign(log.data(), strnlen(log.data(), log.size()));
  // An error log means that the texts are invalid; otherwise the driver failed.
  if (outcome.result != CUDA_SUCCESS && outcome.log.empty())
    context->fail(outcome.result, "cuLinkComplete", "link modules");
  return outcome;
}

Function Module::function(const std::string& lowered_name) const {
  const CurrentContext current(*context_);
  Function function;
  context_->check(context_->api().cuModuleGetFunction(&function.handle, handle_, lowered_name.c_str()),
                  "cuModuleGetFunction", "find kernel " + lowered_name);
  const auto read = [&](CUfunction_attribute which) { return attribute(*context_, function.handle, which); };
  function.registers = read(CU_FUNC_ATTRIBUTE_NUM_REGS);
  function.shared_bytes = static_cast<std::size_t>(read(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  function.local_bytes = static_cast<std::size_t>(read(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  function.constant_bytes = static_cast<std::size_t>(read(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  function.max_threads_per_block = static_cast<std::uint32_t>(read(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  return function;
}

std::optional<ParameterRange> Module::parameter(const Function& function, std::size_t index) const {
  const CurrentContext current(*context_);
  ParameterRange range;
  if (context_->api().cuFuncGetParamInfo(function.handle, index, &range.offset, &range.size) != CUDA_SUCCESS)
    return std::nullopt;
  return range;
}

std::optional<ModuleVariable> Module::variable(const char* name) const {
  const CurrentContext current(*context_);
  ModuleVariable variable;
  const CUresult result =
      context_->api().cuModuleGetGlobal_v2(&variable.address, &variable.size_bytes, handle_, name);
  if (result == CUDA_ERROR_NOT_FOUND) return std::nullopt;
  context_->check(result, "cuModuleGetGlobal", std::string("find variable ") + name);
  return variable;
}

}  // namespace quern::runtime
