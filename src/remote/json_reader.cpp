// SPDX-License-Identifier: Apache-2.0
#include "remote/json_reader.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <vector>

namespace quern::remote {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 8;

[[noreturn]] void bad(const std::string& message) { throw BadJson("bad-request", message); }

}  // namespace

Json parse_limited(std::string_view text, std::size_t max_values) {
  std::size_t values = 0;
  std::vector<std::set<std::string>> names;  // of the objects that are open
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) bad(fmt::format("the JSON is nested deeper than {} levels", kMaxDepth));
    if (++values > max_values) bad(fmt::format("the JSON has more than {} values", max_values));
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    // It is not certain which of the two is meant.
    if (event == Json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second)
      bad("an object of the JSON has two members of one name");
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception& error) {
    bad(fmt::format("the body is not JSON: {}", error.what()));
  }
}

ObjectReader::ObjectReader(const Json& value, std::string where) : value_(value), where_(std::move(where)) {
  if (!value.is_object()) bad(fmt::format("{} is not an object", where_.empty() ? "the body" : where_));
}

std::string ObjectReader::path_of(const char* field) const {
  return where_.empty() ? field : fmt::format("{}.{}", where_, field);
}

const Json* ObjectReader::find(const char* field) {
  asked_.insert(field);
  const auto found = value_.find(field);
  return found == value_.end() || found->is_null() ? nullptr : &*found;
}

std::string ObjectReader::text(const char* field, std::string fallback) {
  const Json* const found = find(field);
  if (found == nullptr) return fallback;
  if (!found->is_string()) bad(fmt::format("'{}' is not a string", path_of(field)));
  const auto& text = found->get_ref<const std::string&>();
  if (text.find('\0') != std::string::npos) bad(fmt::format("'{}' holds a zero byte", path_of(field)));
  return text;
}

std::string ObjectReader::required_text(const char* field) {
  if (find(field) == nullptr) bad(fmt::format("'{}' is missing", path_of(field)));
  return text(field);
}

std::uint64_t ObjectReader::number(const char* field, std::uint64_t fallback, std::uint64_t most) {
  const Json* const found = find(field);
  if (found == nullptr) return fallback;
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() > most)
    bad(fmt::format("'{}' is not a whole number from 0 to {}", path_of(field), most));
  return found->get<std::uint64_t>();
}

double ObjectReader::real(const char* field) {
  const Json* const found = find(field);
  if (found == nullptr) return 0;
  if (!found->is_number() || !std::isfinite(found->get<double>()))
    bad(fmt::format("'{}' is not a number", path_of(field)));
  return found->get<double>();
}

bool ObjectReader::flag(const char* field) {
  const Json* const found = find(field);
  if (found == nullptr) return false;
  if (!found->is_boolean()) bad(fmt::format("'{}' is neither true nor false", path_of(field)));
  return found->get<bool>();
}

const Json& ObjectReader::array(const char* field) {
  static const Json empty = Json::array();
  const Json* const found = find(field);
  if (found == nullptr) return empty;
  if (!found->is_array()) bad(fmt::format("'{}' is not an array", path_of(field)));
  return *found;
}

std::vector<std::string> ObjectReader::texts(const char* field) {
  std::vector<std::string> texts;
  for (const Json& each : array(field)) {
    if (!each.is_string()) bad(fmt::format("'{}' holds something that is not a string", path_of(field)));
    texts.push_back(each.get<std::string>());
    if (texts.back().find('\0') != std::string::npos)
      bad(fmt::format("a string of '{}' holds a zero byte", path_of(field)));
  }
  return texts;
}

void ObjectReader::finish() const {
  for (const auto& [name, ignored] : value_.items())
    if (!asked_.contains(name))
      throw BadJson("unknown-field", fmt::format("this server does not know the field '{}'",
                                                 path_of(name.substr(0, 64).c_str())));
}

}  // namespace quern::remote
