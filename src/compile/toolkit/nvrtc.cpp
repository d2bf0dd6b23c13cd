// SPDX-License-Identifier: Apache-2.0
#include "compile/toolkit/nvrtc.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "base/held_signal.hpp"
#include "base/unique_handle.hpp"
#include "compile/toolkit/static_objects.hpp"

namespace quern::compile {
namespace {

// A program and the table that ends it.
struct ProgramTraits {
  struct type {
    nvrtcProgram program = nullptr;
    const NvrtcTable* table = nullptr;
    friend bool operator==(const type&, const type&) = default;
  };
  static type null() noexcept { return {}; }
  static void release(type handle) noexcept { handle.table->nvrtcDestroyProgram(&handle.program); }
};
using Program = base::UniqueHandle<ProgramTraits>;

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  result.reserve(texts.size());
  for (const std::string& text : texts) result.push_back(text.c_str());
  return result;
}

Diagnostic unusable(const std::string& path, const std::string& reason) {
  Diagnostic diagnostic;
  diagnostic.code = "nvrtc-unusable";
  diagnostic.message = fmt::format("cannot use {} as NVRTC: {}", path, reason);
  return diagnostic;
}

// NVRTC gives texts in two steps: the size with its terminating zero, then the bytes.
template <class GetSize, class Get>
std::string text_of(nvrtcProgram program, GetSize get_size, Get get) {
  std::size_t size = 0;
  if (get_size(program, &size) != NVRTC_SUCCESS || size <= 1) return {};
  std::string text(size, '\0');
  if (get(program, text.data()) != NVRTC_SUCCESS) return {};
  text.resize(size - 1);
  return text;
}

std::vector<std::byte> machine_code_of(const NvrtcTable& table, nvrtcProgram program) {
  std::size_t size = 0;
  if (table.nvrtcGetCUBINSize(program, &size) != NVRTC_SUCCESS || size == 0) return {};
  std::vector<std::byte> bytes(size);
  if (table.nvrtcGetCUBIN(program, reinterpret_cast<char*>(bytes.data())) != NVRTC_SUCCESS) return {};
  return bytes;
}

Program create(const NvrtcTable& table, const NvrtcInput& input, nvrtcResult& result) {
  std::vector<const char*> texts, names;
  for (const abi::HeaderText& header : input.headers) {
    texts.push_back(header.text.c_str());
    names.push_back(header.name.c_str());
  }
  nvrtcProgram program = nullptr;
  result = table.nvrtcCreateProgram(&program, input.source.c_str(), input.file_name.c_str(),
                                    static_cast<int>(texts.size()), texts.data(), names.data());
  return result == NVRTC_SUCCESS ? Program({program, &table}) : Program();
}

/// True while a run continues. After the first answer that it does not, NVRTC must get that answer to the
/// end.
struct Flow {
  const std::function<bool()>& goes_on;
  std::atomic<bool> cancelled{false};

  static int ask(void* payload, void*) {
    auto& flow = *static_cast<Flow*>(payload);
    if (!flow.cancelled && !flow.goes_on()) flow.cancelled = true;
    return flow.cancelled ? 1 : 0;
  }
};

void collect(const NvrtcTable& table, nvrtcProgram program, const NvrtcInput& input, NvrtcOutput& output) {
  output.ptx = text_of(program, table.nvrtcGetPTXSize, table.nvrtcGetPTX);
  output.machine_code = machine_code_of(table, program);
  for (const std::string& expression : input.name_expressions) {
    const char* lowered = nullptr;
    table.nvrtcGetLoweredName(program, expression.c_str(), &lowered);
    output.lowered_names.emplace_back(lowered != nullptr ? lowered : "");
  }
}

// Keeps the library loaded for the life of the process: NVRTC does not free the memory that it allocates when
// it is loaded.
void keep_loaded(const base::DynamicLibrary& library) {
  if (void* handle = ::dlopen(library.path().c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE))
    keep_static_objects(handle);
}

// NVRTC opens libnvrtc-builtins.so.13.0 by its bare name, which the loader finds beside NVRTC only if that
// directory is on its path. A library that is already open is found by its name, so the one beside NVRTC is
// opened here first.
std::optional<base::DynamicLibrary> open_builtins(const std::string& nvrtc_path, int major, int minor) {
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::canonical(nvrtc_path, error).parent_path();
  if (error) return std::nullopt;
  const std::filesystem::path file = directory / fmt::format("libnvrtc-builtins.so.{}.{}", major, minor);
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  Expected<base::DynamicLibrary> library = base::DynamicLibrary::open(file.string());
  if (!library) return std::nullopt;
  return *std::move(library);
}

}  // namespace

Expected<std::shared_ptr<const Nvrtc>> Nvrtc::open(const std::string& path) {
  Expected<base::DynamicLibrary> library = base::DynamicLibrary::open(path);
  if (!library) return std::move(library).errors();
  keep_loaded(*library);
  std::shared_ptr<Nvrtc> nvrtc(new Nvrtc(*std::move(library)));
#define QUERN_NVRTC_FUNCTION(name)                                                    \
  nvrtc->table_.name = nvrtc->library_.function<decltype(nvrtc->table_.name)>(#name); \
  if (nvrtc->table_.name == nullptr) return unusable(path, "it has no function " #name);
#include "compile/toolkit/nvrtc_functions.def"
  if (nvrtc->table_.nvrtcVersion(&nvrtc->major_, &nvrtc->minor_) != NVRTC_SUCCESS)
    return unusable(path, "it does not tell its version");
  nvrtc->set_flow_callback_ = nvrtc->library_.function<SetFlowCallback>("nvrtcSetFlowCallback");
  // The options came with this function.
  nvrtc->has_precompiled_headers_ =
      nvrtc->library_.function<nvrtcResult (*)(nvrtcProgram)>("nvrtcGetPCHCreateStatus") != nullptr;
  nvrtc->builtins_ = open_builtins(nvrtc->path(), nvrtc->major_, nvrtc->minor_);
  int count = 0;
  if (nvrtc->table_.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0)
    return unusable(path, "it does not tell its architectures");
  std::vector<int> architectures(static_cast<std::size_t>(count));
  if (nvrtc->table_.nvrtcGetSupportedArchs(architectures.data()) != NVRTC_SUCCESS)
    return unusable(path, "it does not tell its architectures");
  nvrtc->architectures_.assign(architectures.begin(), architectures.end());
  std::sort(nvrtc->architectures_.begin(), nvrtc->architectures_.end());
  return std::shared_ptr<const Nvrtc>(std::move(nvrtc));
}

NvrtcOutput Nvrtc::compile(const NvrtcInput& input) const {
  NvrtcOutput output;
  nvrtcResult result = NVRTC_SUCCESS;
  const Program owner = create(table_, input, result);
  const nvrtcProgram program = owner.get().program;
  for (const std::string& expression : input.name_expressions)
    if (result == NVRTC_SUCCESS) result = table_.nvrtcAddNameExpression(program, expression.c_str());
  if (result == NVRTC_SUCCESS) {
    const std::vector<const char*> options = pointers(input.options);
    Flow flow{input.goes_on};
    if (input.goes_on && set_flow_callback_ != nullptr) set_flow_callback_(program, &Flow::ask, &flow);
    const base::HeldSignal quiet(SIGXFSZ);  // it makes temporary files
    result = table_.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
    output.log = text_of(program, table_.nvrtcGetProgramLogSize, table_.nvrtcGetProgramLog);
    output.cancelled = flow.cancelled;
  }
  output.success = result == NVRTC_SUCCESS && !output.cancelled;
  output.status = table_.nvrtcGetErrorString(result);
  if (output.success) collect(table_, program, input, output);
  return output;
}

}  // namespace quern::compile
