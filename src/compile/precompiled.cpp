// SPDX-License-Identifier: Apache-2.0
#include "compile/precompiled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/log.hpp"
#include "compile/cuda_source.hpp"
#include "compile/source/cpp_tokens.hpp"
#include "compile/toolkit/nvrtc.hpp"

namespace quern::compile {
namespace {

namespace fs = std::filesystem;
using std::string_view;

/// Templates that NVRTC instantiates ahead of the source would stand in another order in the PTX.
constexpr const char* kNoInstances = "--instantiate-templates-in-pch=false";

bool is_blank(string_view text) { return trim_left(text).empty() || trim_left(text).starts_with("//"); }

/// x of `#include <x>`, with nothing else in the line; empty if it is another directive.
string_view included_name(string_view directive) {
  string_view rest = trim_left(directive.substr(1));
  if (!rest.starts_with("include")) return {};
  const std::optional<HeaderName> name = header_name(rest.substr(7));
  if (!name || name->quoted) return {};
  rest = rest.substr(static_cast<std::size_t>(name->text.data() + name->text.size() + 1 - rest.data()));
  return is_blank(rest) ? name->text : string_view();
}

/// The toolkit's headers are found from the folder of a source that lies among them in other ways.
bool lies_in_toolkit(const CudaPlan& plan) {
  std::error_code error;
  const std::string file = fs::absolute(plan.request->source.file_name, error).lexically_normal().string();
  return error || std::ranges::any_of(plan.toolkit->include_directories, [&](const std::string& directory) {
           return file.starts_with(directory + "/");
         });
}

/// True if the leading includes name the same files and mean the same as in a source of these lines alone:
/// the author's headers and folders could replace what the toolkit's headers include.
bool is_eligible(const CudaPlan& plan) {
  return plan.options.cacheable && plan.headers.empty() && plan.options.include_directories.empty() &&
         plan.options.pre_includes.empty() && plan.toolkit->nvrtc->has_precompiled_headers() &&
         !lies_in_toolkit(plan);
}

/// Reads from the log whether NVRTC used the file, and removes that message.
bool take_message(std::string& log, const std::string& name, const std::string& path) {
  const std::string message = fmt::format("\"{}\": using precompiled header file \"{}\"\n", name, path);
  if (!log.starts_with(message)) return false;
  log.erase(0, message.size());
  return true;
}

Diagnostic not_made(const std::string& reason) {
  Diagnostic diagnostic;
  diagnostic.code = "precompiled-header";
  diagnostic.message = "NVRTC has not made a precompiled header: " + reason;
  return diagnostic;
}

}  // namespace

std::vector<std::string> leading_includes(string_view source) {
  std::vector<std::string> includes;
  for (const CppToken& token : cpp_tokens(source)) {
    if (token.kind != CppToken::Kind::directive) break;
    const string_view name = included_name(token.text);
    if (name.empty()) break;
    includes.emplace_back(name);
  }
  return includes;
}

std::string include_lines(std::span<const std::string> includes) {
  std::string lines;
  for (const std::string& name : includes) lines += "#include <" + name + ">\n";
  return lines;
}

base::Digest precompiled_key(const std::vector<std::string>& options, std::span<const std::string> includes) {
  base::DigestBuilder digest;
  digest.add("precompiled header").add(options.size());
  for (const std::string& option : options) digest.add(option);
  for (const std::string& name : includes) digest.add(name);
  return digest.finish();
}

void PrecompiledHeaders::add(const base::Digest& key, std::string path) {
  const base::LockGuard lock(mutex_);
  paths_.insert_or_assign(key, std::move(path));
}

std::string PrecompiledHeaders::find(const std::vector<std::string>& options,
                                     std::span<const std::string> includes) const {
  const base::LockGuard lock(mutex_);
  if (paths_.empty()) return {};
  for (std::size_t count = includes.size(); count > 0; --count)
    if (const auto found = paths_.find(precompiled_key(options, includes.first(count)));
        found != paths_.end())
      return found->second;
  return {};
}

Expected<base::Digest> precompile(const CudaPlan& plan, const std::string& file) {
  if (!is_eligible(plan)) return not_made("this NVRTC cannot, or the request has options that prevent it");
  NvrtcInput input = nvrtc_input(plan, first_architecture(plan));
  const base::Digest key = precompiled_key(input.options, leading_includes(input.source));
  input.options.insert(input.options.end(), {kNoInstances, "--create-pch=" + file});
  const NvrtcOutput output = plan.toolkit->nvrtc->compile(input);
  // Any other message, such as a warning, would be missing from compiles that use the file.
  const std::string expected =
      fmt::format("\"{}\": creating precompiled header file \"{}\"\n", input.file_name, file);
  if (!output.success) return not_made(output.status + ": " + output.log);
  if (output.log != expected) return not_made(output.log);
  return key;
}

bool run_precompiled(const CudaPlan& plan, const NvrtcInput& input, PrecompiledHeaders& headers,
                     NvrtcOutput& output) {
  if (!is_eligible(plan)) return false;
  const std::vector<std::string> includes = leading_includes(input.source);
  const std::string path = headers.find(input.options, includes);
  if (path.empty()) return false;
  NvrtcInput with = input;
  with.options.insert(with.options.end(), {kNoInstances, "--use-pch=" + path});
  output = plan.toolkit->nvrtc->compile(with);
  if (output.cancelled) return true;
  if (!output.success) return false;
  if (!take_message(output.log, input.file_name, path)) {
    base::log({LogLevel::debug, "NVRTC did not take a precompiled header: " + output.log, {}});
    return false;
  }
  headers.note_use();
  return true;
}

}  // namespace quern::compile
