// SPDX-License-Identifier: Apache-2.0
#include "compile/ptx/ptx_author.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <vector>

#include "compile/ptx/ptx_text.hpp"
#include "compile/source/line_map.hpp"

namespace quern::compile {
namespace {

struct Position {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

/// `.loc file line column [, function_name label[+offset], inlined_at file line column]`
struct Location {
  Position position;
  std::optional<Position> inlined_at;
};

class LocationReader {
 public:
  LocationReader(std::string_view ptx, std::uint32_t line) : tokens_(ptx), rest_(ptx), wanted_(line) {}

  std::optional<Span> read() {
    for (next(); !token_.empty();) item();
    if (locations_.empty()) return std::nullopt;
    const Position position = for_author();
    const auto file = files_.find(position.file);
    if (position.line == 0 || file == files_.end()) return std::nullopt;
    return Span{string_literal(file->second).value_or(""), position.line, position.column, 0};
  }

 private:
  void next() {
    token_ = tokens_.next();
    const auto skipped = static_cast<std::size_t>(token_.data() - rest_.data());
    line_ += static_cast<std::uint32_t>(std::count(rest_.data(), rest_.data() + skipped, '\n'));
    rest_.remove_prefix(skipped);
  }

  void item() {
    const std::string_view word = token_;
    const bool before = line_ <= wanted_;
    next();
    if (word == ".file") {  // behind the functions
      const std::uint32_t index = number();
      if (token_.size() >= 2 && token_.front() == '"') files_[index] = token_;
    } else if (before && (word == ".entry" || word == ".func")) {
      locations_.clear();
    } else if (before && word == ".loc") {
      location();
    }
  }

  void location() {
    Location location{position(), std::nullopt};
    while (token_ == ",") {
      next();
      const std::string_view attribute = token_;
      next();
      if (attribute == "inlined_at")
        location.inlined_at = position();
      else if (attribute == "function_name")
        function_name();
    }
    locations_.push_back(location);
  }

  void function_name() {
    next();
    if (token_ != "+") return;
    next();
    number();
  }

  Position position() {
    const std::uint32_t file = number();
    const std::uint32_t line = number();
    return {file, line, number()};
  }

  /// 0 if there is none.
  std::uint32_t number() {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(token_.data(), token_.data() + token_.size(), value);
    if (error != std::errc() || end != token_.data() + token_.size()) return 0;
    next();
    return value;
  }

  Position for_author() const {
    std::vector<Position> chain{locations_.back().position};
    // An inlined_at refers to an earlier location, so the chain ends.
    auto told = locations_.rbegin();
    while (told != locations_.rend() && told->inlined_at && told->inlined_at->line != 0) {
      chain.push_back(*told->inlined_at);
      told = std::find_if(told + 1, locations_.rend(),
                          [&](const Location& location) { return location.position == chain.back(); });
    }
    const auto own = [&](const Position& position) {
      return position.line != 0 && position.file == chain.back().file;
    };
    const auto innermost = std::find_if(chain.begin(), chain.end(), own);
    return innermost == chain.end() ? Position{} : *innermost;
  }

  PtxTokens tokens_;
  std::string_view rest_;   ///< from the token on
  std::string_view token_;  ///< the one that is looked at; empty at the end
  std::uint32_t line_ = 1;  ///< the token's
  std::uint32_t wanted_;
  std::vector<Location> locations_;                  ///< of the function, up to the line
  std::map<std::uint32_t, std::string_view> files_;  ///< with their quotes
};

}  // namespace

std::optional<Span> author_place(std::string_view ptx, std::uint32_t line) {
  return LocationReader(ptx, line).read();
}

}  // namespace quern::compile
