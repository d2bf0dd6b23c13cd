// SPDX-License-Identifier: Apache-2.0
// Linking: PTX texts, also those in containers, become one, which loads like any other.
#include "cpu/device/cuda_api.hpp"

#include "cpu/device/driver.hpp"
#include "cpu/device/module/container.hpp"
#include "cpu/device/module/linking.hpp"
#include "cpu/device/module/read_ptx.hpp"
#include "cpu/device/module_load.hpp"
#include "ptx/ptx.hpp"

using namespace quern::cpu::device;
using namespace quern;

namespace {

/// Writes the reason to the log of the link, and the inputs of which nothing could be taken.
[[noreturn]] void refuse(const LinkObject& link, CUresult result, const Diagnostics& diagnostics)
    QUERN_REQUIRES(link.mutex) {
  std::string log = to_string(diagnostics);
  for (const std::string& name : link.without_ptx)
    log += name + ": note: nothing of it is linked, since it has no PTX that runs here\n";
  link.options.write_info_log({});
  link.options.write_error_log(log);
  fail(result);
}
[[noreturn]] void refuse(const LinkObject& link, const Refusal& refusal) QUERN_REQUIRES(link.mutex) {
  refuse(link, refusal.result, refusal.diagnostics);
}
[[noreturn]] void refuse(const LinkObject& link, CUresult result, const std::string& name,
                         std::string message, std::string hint) QUERN_REQUIRES(link.mutex) {
  Diagnostic diagnostic;
  diagnostic.code = "link-input";
  diagnostic.span.file = name;
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  refuse(link, result, {std::move(diagnostic)});
}

/// Each text is checked before they are linked, so that errors name the text that contains them.
void check(const LinkObject& link, const LinkText& text) QUERN_REQUIRES(link.mutex) {
  Expected<ptx::Module> module = ptx::parse(text.ptx, text.name);
  if (!module)
    refuse(link, begins_as_ptx(text.ptx) ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE,
           module.errors());
  if (const std::optional<Refusal> refusal = check_target(*module)) refuse(link, *refusal);
  if (const Expected<void> verified = ptx::verify(*module, text.name); !verified)
    refuse(link, CUDA_ERROR_INVALID_PTX, verified.errors());
}

using Texts = std::variant<std::vector<NamedPtx>, Refusal>;

void add(LinkObject& link, Texts found, bool of_archive = false) QUERN_REQUIRES(link.mutex) {
  if (const auto* refusal = std::get_if<Refusal>(&found)) refuse(link, *refusal);
  for (NamedPtx& text : std::get<std::vector<NamedPtx>>(found)) {
    LinkText input{std::move(text.name), std::move(text.text), of_archive};
    check(link, input);
    link.texts.push_back(std::move(input));
  }
}

void add_archive(LinkObject& link, std::string_view bytes, const std::string& name)
    QUERN_REQUIRES(link.mutex) {
  const auto members = members_of_archive(bytes, name);
  if (const auto* refusal = std::get_if<Refusal>(&members)) refuse(link, *refusal);
  for (const Member& member : std::get<std::vector<Member>>(members)) {
    Texts found = container_of(member.bytes) == Container::elf
                      ? ptx_of_object(member.bytes, member.name)
                      : ptx_of_fat_binaries(member.bytes, member.name);
    // libcudadevrt.a has machine code only. What others lack is an error at the end, which names these.
    const auto* refusal = std::get_if<Refusal>(&found);
    if (refusal != nullptr && refusal->result == CUDA_ERROR_NO_BINARY_FOR_GPU)
      link.without_ptx.push_back(member.name);
    else
      add(link, std::move(found), true);
  }
}

void add(LinkObject& link, CUjitInputType type, std::string_view bytes, const std::string& name)
    QUERN_REQUIRES(link.mutex) {
  switch (type) {
    case CU_JIT_INPUT_PTX:  // with or without a NUL at its end
      add(link, std::vector<NamedPtx>{{name, std::string(bytes.substr(0, bytes.find('\0')))}});
      break;
    case CU_JIT_INPUT_FATBINARY:
      add(link, ptx_of_fat_binaries(bytes, name));
      break;
    case CU_JIT_INPUT_OBJECT:
      add(link, ptx_of_object(bytes, name));
      break;
    case CU_JIT_INPUT_LIBRARY:
      add_archive(link, bytes, name);
      break;
    case CU_JIT_INPUT_NVVM:
      refuse(link, CUDA_ERROR_NOT_SUPPORTED, name, "the input is NVVM IR for link-time optimisation",
             "compile without -dlto, to PTX");
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_NUM_INPUT_TYPES:
      if (container_of(bytes) != Container::elf)
        refuse(link, CUDA_ERROR_INVALID_IMAGE, name, "the input is no machine code for a GPU (cubin)",
               "link the PTX of the module instead");
      refuse(link, CUDA_ERROR_NO_BINARY_FOR_GPU, name,
             "the input is machine code for a GPU (cubin); the CPU device links PTX",
             "link the PTX of the module instead");
  }
  link.has_input = true;
}

/// Throws Failure after writing the reason to the log.
std::string linked_text(const LinkObject& link) QUERN_REQUIRES(link.mutex) {
  if (link.texts.empty()) return ".version 8.0\n.target sm_80\n.address_size 64\n";
  const Expected<ptx::Module> module = link_texts(link.texts, link.options.settings());
  if (!module) refuse(link, CUDA_ERROR_INVALID_SOURCE, module.errors());
  std::string text = ptx::print(*module);
  const std::variant<LoadablePtx, Refusal> loadable = read_ptx(text);
  if (const auto* refusal = std::get_if<Refusal>(&loadable)) {
    // Each text is sound by itself: something that one of them calls is lacking.
    const bool lacking = refusal->result == CUDA_ERROR_INVALID_PTX;
    refuse(link, lacking ? CUDA_ERROR_INVALID_SOURCE : refusal->result, refusal->diagnostics);
  }
  return text;
}

}  // namespace

CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  return cuLinkCreate_v2(count, options, values, state);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, std::size_t bytes,
                       const char* name, unsigned count, CUjit_option* options, void** values) {
  return cuLinkAddData_v2(state, type, data, bytes, name, count, options, values);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                       CUjit_option* options, void** values) {
  return cuLinkAddFile_v2(state, type, path, count, options, values);
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                          CUjit_option* options, void** values) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto link = driver.find(state);
    driver.current();
    require(path != nullptr && type >= CU_JIT_INPUT_CUBIN && type < CU_JIT_NUM_INPUT_TYPES);
    static_cast<void>(JitOptions(count, options, values));  // hints for each input mean nothing here
    const std::string content = read_file(path);
    const base::LockGuard lock(link->mutex);
    require(link->linked.empty());
    add(*link, type, content, path);
  });
}

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
    const auto link = driver.find(state);
    driver.current();
    require(data != nullptr && bytes > 0 && type >= CU_JIT_INPUT_CUBIN && type < CU_JIT_NUM_INPUT_TYPES);
    static_cast<void>(JitOptions(count, options, values));  // hints for each input mean nothing here
    const base::LockGuard lock(link->mutex);
    require(link->linked.empty());
    add(*link, type, {static_cast<const char*>(data), bytes}, name != nullptr ? name : "<input>");
  });
}

CUresult cuLinkComplete(CUlinkState state, void** image, std::size_t* bytes) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto link = driver.find(state);
    driver.current();
    require(image != nullptr);
    const base::LockGuard lock(link->mutex);
    require(link->linked.empty(), CUDA_ERROR_INVALID_HANDLE);  // a link is completed once
    link->linked = linked_text(*link);
    link->options.write_error_log({});
    link->options.write_info_log({});
    *image = link->linked.data();
    if (bytes != nullptr) *bytes = link->linked.size() + 1;
  });
}

CUresult cuLinkDestroy(CUlinkState state) {
  return entry([&] { Driver::get().remove(state); });
}
