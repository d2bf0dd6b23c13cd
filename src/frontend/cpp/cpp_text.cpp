// SPDX-License-Identifier: Apache-2.0
#include "frontend/cpp/cpp_text.hpp"

#include <unordered_map>

namespace quern::frontend {
namespace {

constexpr std::string_view kHeaderFiles[] = {
#define QUERN_DEVICE_HEADER(header, file) file,
#include "frontend/cpp/device_names.def"
};

struct NameRow {
  std::string_view name;
  DeviceHeader header;
};
constexpr NameRow kNames[] = {
#define QUERN_DEVICE_NAME(name, header) {name, DeviceHeader::header},
#include "frontend/cpp/device_names.def"
};
constexpr NameRow kNamespaces[] = {
#define QUERN_DEVICE_NAMESPACE(prefix, header) {prefix, DeviceHeader::header},
#include "frontend/cpp/device_names.def"
};

Headers headers_of_name(std::string_view name) {
  static const std::unordered_map<std::string_view, DeviceHeader> index = [] {
    std::unordered_map<std::string_view, DeviceHeader> rows;
    for (const NameRow& row : kNames) rows.emplace(row.name, row.header);
    return rows;
  }();
  if (const auto found = index.find(name.substr(0, name.find_first_of("<("))); found != index.end())
    return found->second;
  for (const NameRow& row : kNamespaces)
    if (name.starts_with(row.name)) return row.header;
  return {};
}

}  // namespace

std::vector<std::string_view> Headers::files() const {
  std::vector<std::string_view> files;
  for (std::size_t i = 0; i < std::size(kHeaderFiles); ++i)
    if ((bits_ >> i & 1) != 0) files.push_back(kHeaderFiles[i]);
  return files;
}

CppText device_name(std::string_view name) { return {std::string(name), headers_of_name(name)}; }

CppText join(const std::vector<CppText>& parts, std::string_view separator) {
  CppText text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

}  // namespace quern::frontend
