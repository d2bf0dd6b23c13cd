// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/file.hpp"
#include "quern/error.hpp"
#include "runtime/array/transfer.hpp"
#include "session/gate.hpp"
#include "session/state.hpp"

namespace quern::session {

abi::Constant plain_constant(const Constant& constant, runtime::Context* context) {
  const std::optional<Dtype>& dtype = constant.value.element().dtype;
  if (!dtype)
    throw Error(
        ErrorCode::usage,
        fmt::format("cannot bind '{}': it holds records; bind numbers or arrays of numbers", constant.name));
  if (context != nullptr) runtime::wait_until_filled(*context, constant.value);
  const NDArray ordered = constant.value.copy(Order::c);
  const std::span<const std::int64_t> shape = ordered.shape();
  return {constant.name,
          *dtype,
          {shape.begin(), shape.end()},
          {ordered.data(), ordered.data() + ordered.size_bytes()}};
}

abi::KernelRequest make_request(abi::KernelSource source, const LoadOptions& options,
                                const abi::Target& target, runtime::Context* context) {
  abi::KernelRequest request;
  request.source = std::move(source);
  if (!options.file_name.empty()) request.source.file_name = options.file_name;
  request.name_expressions = options.name_expressions;
  request.target = target;
  for (const Constant& constant : options.constants)
    request.constants.push_back(plain_constant(constant, context));
  if (request.source.language == abi::Language::ptx) return request;
  for (const std::string& define : options.defines) request.options.push_back("-D" + define);
  for (const std::string& directory : options.include_dirs) request.options.push_back("-I" + directory);
  for (const Header& header : options.headers) request.headers.push_back({header.name, header.text});
  if (options.fastmath) request.options.emplace_back("--use_fast_math");
  request.options.insert(request.options.end(), options.options.begin(), options.options.end());
  return request;
}

abi::Language language_of(SourceLanguage language) {
  switch (language) {
    case SourceLanguage::cuda:
      return abi::Language::cuda;
    case SourceLanguage::ptx:
      return abi::Language::ptx;
    case SourceLanguage::python:
      return abi::Language::python;
  }
  throw Error(ErrorCode::usage, "the language is not a value of SourceLanguage");
}

Diagnostic cannot_bind(const std::string& name, const std::string& file) {
  return make_diagnostic(
      "usage", fmt::format("cannot bind '{}' in {}: only Kernel Python has names for it", name, file),
      "CUDA C++ takes numbers as macros (LoadOptions::defines)");
}

abi::KernelSource text_source(abi::Language language, std::string_view text) {
  const char* const suffix = language == abi::Language::ptx      ? ".ptx"
                             : language == abi::Language::python ? ".py"
                                                                 : ".cu";
  return {language, std::string(text), std::string("<string>") + suffix};
}

namespace {

Expected<std::string> tell_missing(const std::filesystem::path& path, Expected<std::string> text) {
  if (text) return text;
  Diagnostics errors = std::move(text).errors();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) errors.front().code = "file-missing";
  return errors;
}

}  // namespace

Expected<std::string> read_present_file(const std::filesystem::path& path, std::uint64_t most_bytes) {
  return tell_missing(path, base::read_regular_file(path, most_bytes));
}

Expected<abi::KernelSource> read_kernel_file(const std::filesystem::path& path) {
  const std::string suffix = path.extension().string();
  abi::KernelSource source;
  source.file_name = path.string();
  if (suffix == ".ptx") {
    source.language = abi::Language::ptx;
  } else if (suffix == ".py") {
    source.language = abi::Language::python;
  } else if (suffix != ".cu") {
    return make_diagnostic(
        "file-kind", fmt::format("cannot load {}: its suffix names no kernel language", path.string()),
        "kernel files end in .py (Kernel Python), .cu (CUDA C++) or .ptx (PTX); saved modules, which end in "
        ".quern, have no source");
  }
  Expected<std::string> text = read_present_file(path, UINT64_MAX);
  if (!text) return std::move(text).errors();
  source.text = *std::move(text);
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // UTF-8's byte order mark, which Python skips too
  if (source.text.starts_with(kMark)) source.text.erase(0, kMark.size());
  return source;
}

}  // namespace quern::session
