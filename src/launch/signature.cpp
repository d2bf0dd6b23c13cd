// SPDX-License-Identifier: Apache-2.0
#include "launch/signature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace quern::launch {
namespace {

struct TypeRow {
  std::string_view type;
  Dtype dtype;
};

// NVRTC on Linux: long is 64 bits, char is signed.
constexpr TypeRow kTypes[] = {
    {"bool", Dtype::bool_},
    {"char", Dtype::int8},
    {"signed char", Dtype::int8},
    {"unsigned char", Dtype::uint8},
    {"short", Dtype::int16},
    {"short int", Dtype::int16},
    {"signed short", Dtype::int16},
    {"unsigned short", Dtype::uint16},
    {"unsigned short int", Dtype::uint16},
    {"int", Dtype::int32},
    {"signed", Dtype::int32},
    {"signed int", Dtype::int32},
    {"unsigned", Dtype::uint32},
    {"unsigned int", Dtype::uint32},
    {"long", Dtype::int64},
    {"long int", Dtype::int64},
    {"unsigned long", Dtype::uint64},
    {"unsigned long int", Dtype::uint64},
    {"long unsigned int", Dtype::uint64},
    {"long long", Dtype::int64},
    {"long long int", Dtype::int64},
    {"unsigned long long", Dtype::uint64},
    {"unsigned long long int", Dtype::uint64},
    {"long long unsigned int", Dtype::uint64},
    {"size_t", Dtype::uint64},
    {"ptrdiff_t", Dtype::int64},
    {"int8_t", Dtype::int8},
    {"int16_t", Dtype::int16},
    {"int32_t", Dtype::int32},
    {"int64_t", Dtype::int64},
    {"uint8_t", Dtype::uint8},
    {"uint16_t", Dtype::uint16},
    {"uint32_t", Dtype::uint32},
    {"uint64_t", Dtype::uint64},
    {"float", Dtype::float32},
    {"double", Dtype::float64},
    {"half", Dtype::float16},
    {"__half", Dtype::float16},
    {"_Float16", Dtype::float16},
    {"nv_bfloat16", Dtype::bfloat16},
    {"__nv_bfloat16", Dtype::bfloat16},
    {"complex<float>", Dtype::complex64},
    {"complex<double>", Dtype::complex128},
    {".f32", Dtype::float32},
    {".f64", Dtype::float64},
    {".s8", Dtype::int8},
    {".u8", Dtype::uint8},
    {".b8", Dtype::uint8},
    {".s16", Dtype::int16},
    {".u16", Dtype::uint16},
    {".b16", Dtype::uint16},
    {".s32", Dtype::int32},
    {".u32", Dtype::uint32},
    {".b32", Dtype::uint32},
};

constexpr std::string_view kQualifiers[] = {"const",    "volatile", "__restrict__",      "__restrict",
                                            "restrict", "struct",   "__grid_constant__", "typename"};
constexpr std::string_view kNamespaces[] = {"::", "std::", "cuda::", "thrust::", "quern::"};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// A type without qualifiers and with single spaces between words and none elsewhere.
struct PlainType {
  std::string text;
  bool const_argument = false;  ///< an argument of the outermost template was const: an array's element
};

PlainType plain(std::string_view type) {
  PlainType plain;
  std::string& result = plain.text;
  std::size_t depth = 0;  // of template arguments
  for (std::size_t at = 0; at < type.size();) {
    if (!is_word(type[at])) {
      depth += type[at] == '<' ? 1 : 0;
      depth -= type[at] == '>' && depth != 0 ? 1 : 0;
      if (type[at] != ' ' && type[at] != '\t') result += type[at];
      ++at;
      continue;
    }
    const std::size_t start = at;
    while (at < type.size() && is_word(type[at])) ++at;
    const std::string_view word = type.substr(start, at - start);
    if (std::find(std::begin(kQualifiers), std::end(kQualifiers), word) != std::end(kQualifiers)) {
      plain.const_argument |= depth == 1 && word == "const";
      continue;
    }
    if (!result.empty() && is_word(result.back())) result += ' ';
    result += word;
  }
  return plain;
}

std::string_view without_namespaces(std::string_view type) {
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view prefix : kNamespaces) {
      if (!type.starts_with(prefix)) continue;
      type.remove_prefix(prefix.size());
      again = true;
    }
  }
  return type;
}

struct ArrayRow {
  std::string_view prefix;
  char layout;
};
constexpr ArrayRow kArrays[] = {{"quern::array<", 'A'}, {"quern::c_array<", 'C'}, {"quern::f_array<", 'F'}};

/// "quern::array<float,2>" -> float32 and 2.
bool read_array_type(const PlainType& plain, ParameterPlan& plan) {
  const std::string_view type = plain.text;
  const auto row = std::find_if(std::begin(kArrays), std::end(kArrays),
                                [&](const ArrayRow& each) { return type.starts_with(each.prefix); });
  if (row == std::end(kArrays) || !type.ends_with('>')) return false;
  const std::string_view prefix = row->prefix;
  const std::string_view inside = type.substr(prefix.size(), type.size() - prefix.size() - 1);
  plan.layout = row->layout;
  const std::size_t comma = inside.rfind(',');
  if (comma == std::string_view::npos) return false;
  const std::string_view rank = inside.substr(comma + 1);
  const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), plan.ndim);
  if (error != std::errc() || end != rank.data() + rank.size()) return false;
  plan.takes = Takes::device_array;
  plan.dtype = dtype_of_type(inside.substr(0, comma));
  plan.read_only |= plain.const_argument;
  return true;
}

void read_ptx_type(std::string_view type, ParameterPlan& plan) {
  if (plan.size == 8 && (type == ".u64" || type == ".s64" || type == ".b64")) {
    plan.takes = Takes::word;
    return;
  }
  plan.dtype = dtype_of_type(type);
  if (!plan.dtype || quern::size_bytes(*plan.dtype) != plan.size) return;  // an array of bytes
  plan.takes = Takes::scalar;
  plan.any_sign = type[1] == 'u' || type[1] == 'b';
}

void read_cuda_type(PlainType plain, ParameterPlan& plan) {
  std::string& type = plain.text;
  if (const std::size_t bracket = type.find('['); bracket != std::string::npos)
    type.replace(bracket, std::string::npos, "*");
  if (type.ends_with('*')) {
    type.pop_back();
    plan.takes = Takes::pointer;
    plan.dtype = dtype_of_type(type);
    plan.any_bytes = type == "char";
    return;
  }
  if (read_array_type(plain, plan)) return;
  plan.dtype = dtype_of_type(type);
  if (plan.dtype && quern::size_bytes(*plan.dtype) == plan.size) plan.takes = Takes::scalar;
}

std::string shown(const abi::ParameterInfo& parameter) {
  std::string text = parameter.type.empty() ? fmt::format("{} bytes", parameter.size) : parameter.type;
  if (!parameter.name.empty()) text += " " + parameter.name;
  return text;
}

std::size_t scratch_of(const ParameterPlan& plan) {
  const std::size_t bytes = plan.takes == Takes::pointer ? 0 : std::max<std::size_t>(plan.size, 16);
  return (bytes + 15) & ~std::size_t{15};
}

}  // namespace

std::optional<Dtype> dtype_of_type(std::string_view type) {
  const std::string text = plain(type).text;
  const std::string_view bare = without_namespaces(text);
  for (const TypeRow& row : kTypes)
    if (row.type == bare) return row.dtype;
  return std::nullopt;
}

ParameterPlan plan_parameter(const abi::ParameterInfo& parameter) {
  ParameterPlan plan;
  plan.offset = parameter.offset;
  plan.size = parameter.size;
  plan.shown = shown(parameter);
  plan.read_only = parameter.read_only;
  if (parameter.type.starts_with('.'))
    read_ptx_type(parameter.type, plan);
  else if (!parameter.type.empty())
    read_cuda_type(plain(parameter.type), plan);
  if (parameter.pointer && plan.takes != Takes::pointer) {
    plan.takes = Takes::pointer;
    plan.dtype.reset();
  }
  if (plan.takes == Takes::opaque) plan.dtype.reset();
  return plan;
}

Signature read_signature(const abi::EntryInfo& entry) {
  Signature signature;
  signature.kernel = entry.name;
  signature.text = entry.name + "(";
  for (const abi::ParameterInfo& parameter : entry.parameters) {
    if (!signature.parameters.empty()) signature.text += ", ";
    signature.columns.push_back(signature.text.size());
    signature.parameters.push_back(plan_parameter(parameter));
    signature.text += signature.parameters.back().shown;
    signature.scratch_bytes += scratch_of(signature.parameters.back());
  }
  signature.text += ")";
  return signature;
}

}  // namespace quern::launch
