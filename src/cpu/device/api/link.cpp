// SPDX-License-Identifier: Apache-2.0
// Linking: PTX texts become one, which loads like any other.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>

#include "cpu/device/driver.hpp"
#include "cpu/device/read_ptx.hpp"
#include "ptx/link.hpp"
#include "ptx/ptx.hpp"

using namespace quern::cpu::device;
using namespace quern;

namespace {

void refuse(const LinkObject& link, CUresult result, const Diagnostics& diagnostics) {
  link.options.write_info_log({});
  link.options.write_error_log(to_string(diagnostics));
  fail(result);
}

/// PTX, with or without a NUL at its end.
std::string text_of(const void* data, std::size_t bytes) {
  const std::string_view text(static_cast<const char*>(data), bytes);
  return std::string(text.substr(0, text.find('\0')));
}

std::vector<ptx::LinkInput> read(const LinkObject& link) QUERN_REQUIRES(link.mutex) {
  std::vector<ptx::LinkInput> inputs;
  for (const LinkText& text : link.texts) {
    Expected<ptx::Module> module = ptx::parse(text.ptx, text.name);
    if (!module) refuse(link, CUDA_ERROR_INVALID_PTX, module.errors());
    inputs.push_back({text.name, *std::move(module)});
  }
  return inputs;
}

/// Each text is checked before they are linked, so that errors name the text that contains them.
void check(const LinkObject& link, const LinkText& text) {
  Expected<ptx::Module> module = ptx::parse(text.ptx, text.name);
  if (!module) refuse(link, CUDA_ERROR_INVALID_PTX, module.errors());
  if (const Expected<void> verified = ptx::verify(*module, text.name); !verified)
    refuse(link, CUDA_ERROR_INVALID_PTX, verified.errors());
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(state != nullptr);
    *state = driver.add(std::make_shared<LinkObject>(JitOptions(count, options, values)));
  });
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, std::size_t bytes,
                          const char* name, unsigned count, CUjit_option* options, void** values) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    const auto link = driver.find(state);
    require(data != nullptr && bytes > 0 && type >= CU_JIT_INPUT_CUBIN && type < CU_JIT_NUM_INPUT_TYPES);
    static_cast<void>(JitOptions(count, options, values));  // hints for each text mean nothing here
    const base::LockGuard lock(link->mutex);
    require(link->linked.empty(), CUDA_ERROR_INVALID_HANDLE);
    // Machine code, and containers of it, are for GPUs.
    require(type == CU_JIT_INPUT_PTX, CUDA_ERROR_NO_BINARY_FOR_GPU);
    LinkText text{name != nullptr ? name : "<ptx>", text_of(data, bytes)};
    check(*link, text);
    link->texts.push_back(std::move(text));
  });
}

CUresult cuLinkComplete(CUlinkState state, void** image, std::size_t* bytes) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    const auto link = driver.find(state);
    require(image != nullptr);
    const base::LockGuard lock(link->mutex);
    require(!link->texts.empty());
    if (link->linked.empty()) {
      const Expected<ptx::Module> module = ptx::link(read(*link));
      if (!module) refuse(*link, CUDA_ERROR_INVALID_PTX, module.errors());
      std::string text = ptx::print(*module);
      const std::variant<LoadablePtx, Refusal> loadable = read_ptx(text);
      if (const auto* refusal = std::get_if<Refusal>(&loadable))
        refuse(*link, refusal->result, refusal->diagnostics);
      link->linked = std::move(text);
      link->options.write_error_log({});
      link->options.write_info_log({});
    }
    *image = link->linked.data();
    if (bytes != nullptr) *bytes = link->linked.size() + 1;
  });
}

CUresult cuLinkDestroy(CUlinkState state) {
  return entry([&] { Driver::get().remove(state); });
}
