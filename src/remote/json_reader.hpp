// SPDX-License-Identifier: Apache-2.0
// Reads objects of untrusted JSON field by field. Inside this component only: what does not fit is thrown as
// BadJson and becomes a diagnostic in the functions of messages.hpp.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace quern::remote {

struct BadJson : std::runtime_error {
  BadJson(std::string code_, const std::string& message)
      : std::runtime_error(message), code(std::move(code_)) {}
  std::string code;
};

/// Parses within limits of depth and of the number of values, so that a small text cannot become a large
/// tree. Throws BadJson.
nlohmann::json parse_limited(std::string_view text, std::size_t max_values);

/// One object. Each field is asked for by its name once; finish() refuses those that were not asked for.
class ObjectReader {
 public:
  /// `where` names the object in messages: "target", "headers[3]".
  ObjectReader(const nlohmann::json& value, std::string where);

  /// The field, or null if the object has none.
  const nlohmann::json* find(const char* field);
  std::string text(const char* field, std::string fallback = {});
  std::string required_text(const char* field);
  std::uint64_t number(const char* field, std::uint64_t fallback, std::uint64_t most);
  double real(const char* field);
  bool flag(const char* field);
  std::vector<std::string> texts(const char* field);
  /// The array's elements; none if there is no such field.
  const nlohmann::json& array(const char* field);
  void finish() const;

  /// "headers[3].name": a field, for messages.
  std::string path_of(const char* field) const;

 private:
  const nlohmann::json& value_;
  std::string where_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace quern::remote
