// SPDX-License-Identifier: Apache-2.0
#include "compile/source/virtual_headers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "compile/source/cpp_tokens.hpp"
#include "compile/source/device_headers.hpp"

namespace quern::compile {
namespace {

namespace fs = std::filesystem;
using std::string_view;

Diagnostic refusal(string_view message, string_view hint) {
  Diagnostic diagnostic;
  diagnostic.code = "usage";
  diagnostic.message = message;
  diagnostic.hint = hint;
  return diagnostic;
}

bool is_ours(string_view name) {
  return std::ranges::any_of(device_headers(),
                             [&](const base::EmbeddedText& header) { return header.name == name; });
}

Expected<void> check(const abi::HeaderText& header, const std::set<string_view>& known) {
  const string_view name = header.name;
  if (name.empty() || name.find_first_of(string_view("\0\n\">", 4)) != string_view::npos)
    return refusal(fmt::format("cannot take a header named '{}': no #include can name it", name.data()),
                   "name it as sources include it, such as kernels/tile.cuh");
  if (known.contains(name))
    return refusal(fmt::format("cannot take two headers named '{}'", name), "give each name once");
  if (is_ours(name))
    return refusal(fmt::format("cannot take a header named '{}': that is quern's own", name),
                   "give it another name");
  return {};
}

/// The name in `#include "name"`; nothing for any other directive.
std::optional<string_view> quoted_name(string_view directive) {
  const auto skip_spaces = [&] {
    directive.remove_prefix(std::min(directive.find_first_not_of(" \t"), directive.size()));
  };
  directive.remove_prefix(1);  // '#'
  skip_spaces();
  if (!directive.starts_with("include")) return std::nullopt;
  directive.remove_prefix(string_view("include").size());
  skip_spaces();
  if (!directive.starts_with('"')) return std::nullopt;
  const std::size_t end = directive.find('"', 1);
  if (end == string_view::npos) return std::nullopt;
  return directive.substr(1, end - 1);
}

/// The header's text, with the names of headers that lie beside it in full.
std::string with_full_names(const abi::HeaderText& header, const std::set<string_view>& known) {
  const string_view text = header.text;
  const fs::path directory = fs::path(header.name).parent_path();
  std::string result;
  std::size_t copied = 0;
  for (const CppToken& token : cpp_tokens(text)) {
    if (token.kind != CppToken::Kind::directive) continue;
    const std::optional<string_view> name = quoted_name(token.text);
    if (!name) continue;
    const std::string full = (directory / *name).lexically_normal().generic_string();
    if (full == *name || !known.contains(full)) continue;
    const auto at = static_cast<std::size_t>(name->data() - text.data());
    result.append(text.substr(copied, at - copied)).append(full);
    copied = at + name->size();
  }
  return result.append(text.substr(copied));
}

struct Standard {
  string_view name;
  string_view libcuxx;
  bool in_std;
};
constexpr Standard kStandard[] = {
#define QUERN_STANDARD_HEADER(name, libcuxx) {name, libcuxx, true},
#define QUERN_C_HEADER(name, libcuxx) {name, libcuxx, false},
#include "compile/source/standard_headers.def"
};

/// The contents of <cfloat> and <float.h>: libcu++'s is empty under NVRTC.
constexpr const char* kFloatLimits = R"(#pragma once
#define FLT_RADIX 2
#define FLT_EVAL_METHOD 0
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_DECIMAL_DIG 9
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX_10_EXP 38
#define FLT_MIN 0x1p-126f
#define FLT_MAX 0x1.fffffep+127f
#define FLT_EPSILON 0x1p-23f
#define FLT_TRUE_MIN 0x1p-149f
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_DECIMAL_DIG 17
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MIN_10_EXP (-307)
#define DBL_MAX_10_EXP 308
#define DBL_MIN 0x1p-1022
#define DBL_MAX 0x1.fffffffffffffp+1023
#define DBL_EPSILON 0x1p-52
#define DBL_TRUE_MIN 0x1p-1074
#define DECIMAL_DIG 17
)";

/// "cuda/std/tuple"; before libcu++ called them so, some were "cuda/std/__algorithm_". Empty if libcu++ has
/// neither.
std::string libcuxx_header(string_view name, const std::vector<std::string>& toolkit_directories) {
  for (const std::string& form : {fmt::format("cuda/std/{}", name), fmt::format("cuda/std/__{}_", name)})
    for (const std::string& directory : toolkit_directories) {
      std::error_code error;
      if (fs::is_regular_file(directory + "/" + form, error)) return form;
    }
  return {};
}

}  // namespace

Expected<std::vector<abi::HeaderText>> resolve_headers(const std::vector<abi::HeaderText>& headers) {
  std::set<string_view> known;
  for (const abi::HeaderText& header : headers) {
    if (Expected<void> good = check(header, known); !good) return std::move(good).errors();
    known.insert(header.name);
  }
  std::vector<abi::HeaderText> resolved;
  for (const abi::HeaderText& header : headers)
    resolved.push_back({header.name, with_full_names(header, known)});
  return resolved;
}

std::vector<abi::HeaderText> standard_headers(const std::vector<std::string>& toolkit_directories) {
  if (toolkit_directories.empty()) return {};
  std::vector<abi::HeaderText> headers{{"cfloat", kFloatLimits}, {"float.h", kFloatLimits}};
  for (const Standard& row : kStandard) {
    const std::string libcuxx = libcuxx_header(row.libcuxx, toolkit_directories);
    if (libcuxx.empty()) continue;
    std::string text = fmt::format("#pragma once\n#include <{}>\n", libcuxx);
    // libcu++'s <cassert> opens no namespace.
    if (row.in_std)
      text += "namespace cuda { namespace std {} }\nnamespace std { using namespace ::cuda::std; }\n";
    headers.push_back({std::string(row.name), std::move(text)});
  }
  return headers;
}

std::vector<abi::HeaderText> without_replaced(const std::vector<abi::HeaderText>& standard,
                                              const std::vector<abi::HeaderText>& headers,
                                              const std::vector<std::string>& directories) {
  std::vector<abi::HeaderText> left;
  for (const abi::HeaderText& header : standard) {
    const auto is_it = [&](const abi::HeaderText& other) { return other.name == header.name; };
    const auto has_it = [&](const std::string& directory) {
      std::error_code error;
      return fs::is_regular_file(directory + "/" + header.name, error);
    };
    if (std::ranges::none_of(headers, is_it) && std::ranges::none_of(directories, has_it))
      left.push_back(header);
  }
  return left;
}

}  // namespace quern::compile
