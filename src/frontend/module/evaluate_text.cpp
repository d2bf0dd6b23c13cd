// SPDX-License-Identifier: Apache-2.0
// Evaluates strings and versions at the file's level that select between definitions.
#include <algorithm>
#include <charconv>

#include "frontend/module/decide.hpp"
#include "frontend/module/evaluate.hpp"

namespace quern::frontend {
namespace {

using Kind = Value::Kind;

Value list_of(std::vector<Value> items, bool list) {
  Value value;
  value.kind = Kind::tuple;
  value.list = list;
  value.items = std::move(items);
  return value;
}

Value split(const std::string& text, const std::string& at) {
  std::vector<Value> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(at, begin);
    Value part;
    part.kind = Kind::string;
    part.text = text.substr(begin, end == std::string::npos ? end : end - begin);
    parts.push_back(std::move(part));
    if (end == std::string::npos) return list_of(std::move(parts), true);
    begin = end + at.size();
  }
}

/// int("12"); unknown for text that int() may read differently.
Value whole_of(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? Value::of(number) : Value{};
}

}  // namespace

/// Returns unknown if the expression is no such call.
Value Evaluator::text_call(const Expr& expr) {
  const Expr& named = *expr.items[0];
  const std::size_t count = expr.items.size() - 1;
  if (named.kind == ExprKind::attribute && (named.name == "split" || named.name == "startswith") &&
      count == 1) {
    const Value base = evaluate(*named.items[0]), word = evaluate(*expr.items[1]);
    if (base.kind != Kind::string || word.kind != Kind::string || word.text.empty()) return {};
    return named.name == "split" ? split(base.text, word.text)
                                 : Value::boolean(base.text.starts_with(word.text));
  }
  if (named.kind == ExprKind::attribute || named.kind == ExprKind::name) {
    const std::string words = dotted_text(named);
    if (words.empty()) return {};
    const Value callee = evaluate(named);
    if (callee.is_imported("numba.cuda.is_available") && count == 0) return Value::boolean(true);
    if (callee.is_imported() && count == 1 && makes_version(callee.text)) {
      const Value text = evaluate(*expr.items[1]);
      return text.kind == Kind::string ? version_of(text.text) : Value{};
    }
    const bool pythons =
        named.kind == ExprKind::name && file_.meant(named.name) == nullptr && callee.doubt == nullptr;
    if (!pythons || count == 0) return {};
    if ((words == "tuple" || words == "list") && count == 1) {
      const Value items = evaluate(*expr.items[1]);
      return items.kind == Kind::tuple && !items.version ? list_of(items.items, words == "list") : Value{};
    }
    if (words == "int" && count == 1) {
      const Value text = evaluate(*expr.items[1]);
      return text.kind == Kind::string ? whole_of(text.text) : Value{};
    }
    if (words == "map" && count == 2 && dotted_text(*expr.items[1]) == "int" &&
        file_.meant("int") == nullptr) {
      std::vector<Value> numbers;
      for (const Value& item : evaluate(*expr.items[2]).items) {
        numbers.push_back(item.kind == Kind::string ? whole_of(item.text) : Value{});
        if (numbers.back().kind == Kind::unknown) return {};
      }
      return numbers.empty() ? Value{} : list_of(std::move(numbers), true);
    }
  }
  return {};
}

/// int(x) for x in items, without conditions.
Value Evaluator::comprehension(const Expr& expr) {
  const Value items = evaluate(*expr.items[2]);
  if (items.kind != Kind::tuple || items.version || items.items.size() > 1000) return Value::computed();
  std::vector<Value> values;
  for (const Value& item : items.items) {
    inner_names_.emplace_back(expr.items[1]->name, item);
    values.push_back(evaluate(*expr.items[0]));
    inner_names_.pop_back();
    if (values.back().kind == Kind::unknown || values.back().kind == Kind::host) return Value::computed();
  }
  return list_of(std::move(values), true);
}

/// items[a:b]
Value Evaluator::slice_of(const Value& items, const Expr& slice) {
  if (items.kind != Kind::tuple || items.version || slice.items[2] != nullptr) return Value::computed();
  const auto count = static_cast<std::int64_t>(items.items.size());
  std::int64_t bounds[2] = {0, count};
  for (std::size_t i = 0; i < 2; ++i) {
    if (slice.items[i] == nullptr) continue;
    const Value given = evaluate(*slice.items[i]);
    if (given.kind != Kind::integer) return Value::computed();
    bounds[i] = std::clamp<std::int64_t>(given.integer < 0 ? given.integer + count : given.integer, 0, count);
  }
  std::vector<Value> taken;
  for (std::int64_t i = bounds[0]; i < bounds[1]; ++i)
    taken.push_back(items.items[static_cast<std::size_t>(i)]);
  return list_of(std::move(taken), items.list);
}

}  // namespace quern::frontend
