// SPDX-License-Identifier: Apache-2.0
// Reads types and signatures in Numba's syntax: float32[:, ::1], void(int32, float64[:]), UniTuple(int64, 2).
#include "frontend/module/signature.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/module/evaluate.hpp"
#include "frontend/syntax/lexer.hpp"
#include "frontend/syntax/parser.hpp"

namespace quern::frontend {
namespace {

using Kind = Value::Kind;

constexpr std::size_t kMostDimensions = 31;
constexpr std::size_t kMostNames = 20;  // names that are defined by other names
constexpr std::int64_t kMostRecordBytes = std::int64_t{1} << 20;

// The name after the last dot. It identifies a type, whatever name the module has.
std::string_view last_name(const Expr& expr) {
  return expr.kind == ExprKind::name || expr.kind == ExprKind::attribute ? expr.name : std::string_view();
}

bool is_full_slice(const Expr& expr) {
  return expr.kind == ExprKind::slice && expr.items[0] == nullptr && expr.items[1] == nullptr;
}
bool is_unit_slice(const Expr& expr) {
  return is_full_slice(expr) && expr.items[2] != nullptr && expr.items[2]->kind == ExprKind::integer &&
         expr.items[2]->integer == 1;
}

/// Returns the place of a part of `text` in the string literal that contains it. If the literal contains
/// escapes, returns the place of the whole literal.
Place place_in(const SourceText& source, Place string, std::string_view text, const Span& span) {
  const std::size_t at = source.at(string).find(text);
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (at == std::string_view::npos || !plain || span.column == 0 || span.end_column > text.size() + 1)
    return string;
  const std::uint32_t begin = string.begin + static_cast<std::uint32_t>(at);
  return {begin + span.column - 1, begin + span.end_column - 1};
}

std::uint32_t alignment_of(Type type) {
  if (is_complex(type)) return size_of(type) / 2;
  if (!is_record(type)) return std::max(size_of(type), 1u);
  std::uint32_t widest = 1;
  for (const Field& field : type->fields) widest = std::max(widest, alignment_of(field.type));
  return widest;
}

}  // namespace

/// The expression that a single line of the file's level assigns to the name; null if there is no such line.
const Expr* TypeReader::assigned_expr(std::string_view name) {
  const Binding* found = file_.meant(name);
  if (found == nullptr || found->kind != Binding::Kind::assignment || doubts_.about(name, found, nullptr) ||
      file_.timeline.changed(*found, found->time, file_.now) != nullptr)
    return nullptr;
  return assigned_expr_of(*found, name);
}

const Expr* TypeReader::assigned_expr_of(const Binding& binding, std::string_view name) {
  for (const Stmt* line : file_.parser().parse_line(binding.token))
    if (line->kind == StmtKind::assign)
      for (const Expr* target : line->targets)
        if (target->kind == ExprKind::name && target->name == name) return line->value;
  return nullptr;
}

/// Follows names to the signature: SIG = void(float32[:]), or a string.
const Expr& TypeReader::signature_meant(const Expr& expr) {
  const Expr* meant = &expr;
  for (std::size_t names = 0; meant->kind == ExprKind::name && names < kMostNames; ++names) {
    const Expr* value = assigned_expr(meant->name);
    if (value == nullptr) break;
    meant = value;
  }
  return *meant;
}

Type TypeReader::array_type(const Expr& expr) {
  const Type element = type_of(*expr.items[0]);
  if (is_error(element)) return element;
  const Expr& inside = *expr.items[1];
  std::vector<const Expr*> axes = {&inside};
  if (inside.kind == ExprKind::tuple) axes.assign(inside.items.begin(), inside.items.end());
  if (axes.size() > kMostDimensions) {
    file_.report.error(expr.place, "signature",
                       fmt::format("an array has at most {} dimensions", kMostDimensions),
                       "use fewer dimensions");
    return file_.types.error;
  }
  for (const Expr* axis : axes)
    if (!is_full_slice(*axis) || (axis->items[2] != nullptr && !is_unit_slice(*axis))) {
      file_.report.error(axis->place, "signature", "an array type has ':' or '::1' for each dimension",
                         "write float32[:, ::1] for a C-contiguous array of two dimensions");
      return file_.types.error;
    }
  const bool first = is_unit_slice(*axes.front()), last = is_unit_slice(*axes.back());
  return file_.types.array(element, static_cast<unsigned>(axes.size()), last ? 'C' : first ? 'F' : 'A');
}

/// Array(float32, 1, 'C', readonly=True): returns the keyword at the end of the arguments, if there is one.
std::optional<bool> TypeReader::read_only_of(const Expr& expr) {
  if (expr.items.size() == 4) return false;
  const Expr& last = *expr.items[4];
  const bool named = last.kind == ExprKind::keyword;
  if (expr.items.size() > 5 || (named && last.name != "readonly")) return std::nullopt;
  const Value value = evaluator_.evaluate(named ? *last.items[0] : last);
  if (value.kind != Value::Kind::boolean) return std::nullopt;
  return value.integer != 0;
}

/// Array(float32, 1, 'C'), UniTuple(int64, 2), Tuple((int64, float32)).
Type TypeReader::called_type(const Expr& expr) {
  const std::string_view name = last_name(*expr.items[0]);
  const std::size_t count = expr.items.size() - 1;
  if (name == "Array" && count >= 3) {
    const Value ndim = evaluator_.evaluate(*expr.items[2]), layout = evaluator_.evaluate(*expr.items[3]);
    const Type element = type_of(*expr.items[1]);
    const std::optional<bool> read_only = read_only_of(expr);
    if (read_only && ndim.kind == Value::Kind::integer && ndim.integer >= 0 &&
        ndim.integer <= std::int64_t{kMostDimensions} && layout.text.size() == 1 && !is_error(element))
      return file_.types.array(element, static_cast<unsigned>(ndim.integer), layout.text[0], *read_only);
  }
  if (name == "UniTuple" && count == 2) {
    const Value length = evaluator_.evaluate(*expr.items[2]);
    if (length.kind == Value::Kind::integer && length.integer >= 0 && length.integer <= 1000)
      return file_.types.tuple(
          std::vector<Type>(static_cast<std::size_t>(length.integer), type_of(*expr.items[1])));
  }
  if (name == "Tuple" && count == 1) {
    std::vector<Type> items;
    for (const Expr* item : expr.items[1]->items) items.push_back(type_of(*item));
    return file_.types.tuple(std::move(items));
  }
  if (name == "from_dtype" && count == 1) return type_of(*expr.items[1]);
  if (name == "Record" && count == 2) return record_type(*expr.items[1], *expr.items[2]);
  return nullptr;
}

/// Record([('x', float32, 0), ('v', float32, 4, (3,))], 16): names, types, offsets, and shapes of fields that
/// are arrays.
Type TypeReader::record_type(const Expr& list, const Expr& size) {
  const Value bytes = evaluator_.evaluate(size);
  if (list.kind != ExprKind::list || bytes.kind != Value::Kind::integer || bytes.integer < 0 ||
      bytes.integer > kMostRecordBytes)
    return nullptr;
  std::vector<Field> fields;
  for (const Expr* item : list.items) {
    const std::size_t parts = item->items.size();
    if (item->kind != ExprKind::tuple || parts < 3 || parts > 4 || item->items[0]->kind != ExprKind::string)
      return nullptr;
    const Value offset = evaluator_.evaluate(*item->items[2]);
    Field field{std::string(item->items[0]->name), type_of(*item->items[1]), 0, {}};
    const std::optional<std::vector<std::int64_t>> shape =
        parts == 4 ? shape_of(evaluator_.evaluate(*item->items[3])) : std::vector<std::int64_t>{};
    if (offset.kind != Value::Kind::integer || !shape || !(is_number(field.type) || is_record(field.type)))
      return nullptr;
    if (!fits_record(*shape, field.type)) return nullptr;
    field.shape = *shape;
    if (offset.integer < 0 || offset.integer + std::int64_t{size_of(field)} > bytes.integer) return nullptr;
    field.offset = static_cast<std::uint32_t>(offset.integer);
    if (!fields.empty() && field.offset < fields.back().offset + size_of(fields.back())) return nullptr;
    fields.push_back(std::move(field));
  }
  return file_.types.record(std::move(fields), static_cast<std::uint32_t>(bytes.integer));
}

Type TypeReader::type_of(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::name:
    case ExprKind::attribute: {
      const Value value = evaluator_.evaluate(expr);
      if (value.kind == Value::Kind::dtype) return value.type;
      if (const Type type = file_.types.scalar_named(last_name(expr)); type != nullptr) return type;
      if (last_name(expr) == "float") return file_.types.float64;
      if (last_name(expr) == "int") return file_.types.int64;
      if (const Expr& meant = signature_meant(expr);
          meant.kind == ExprKind::subscript && file_.depth < kMostNames) {
        ++file_.depth;
        const Type type = type_of(meant);
        --file_.depth;
        return type;
      }
      break;
    }
    case ExprKind::subscript:
      return array_type(expr);
    case ExprKind::call:
      if (const Type type = called_type(expr)) return type;
      break;
    case ExprKind::none:
      return file_.types.none;
    case ExprKind::broken:
      return file_.types.error;
    default:
      break;
  }
  const std::string_view near = closest(last_name(expr), file_.types.scalar_names());
  file_.report.error(expr.place, "signature", "this is no type that kernels have",
                     near.empty() ? "types are written as in Numba: float32, int64[:], float32[:, ::1]"
                                  : fmt::format("did you mean '{}'?", near));
  return file_.types.error;
}

bool TypeReader::read_signature(const Expr& given, SignatureTypes& out) {
  const Expr& expr = signature_meant(given);
  if (expr.kind == ExprKind::string) return read_signature_text(expr.name, "the signature", expr.place, out);
  std::vector<const Expr*> parameters = {&expr};
  if (expr.kind == ExprKind::tuple) {
    parameters.assign(expr.items.begin(), expr.items.end());
  } else if (expr.kind == ExprKind::call && called_type(expr) == nullptr) {
    out.result = type_of(*expr.items[0]);
    parameters.assign(expr.items.begin() + 1, expr.items.end());
  }
  bool good = out.result == nullptr || !is_error(out.result);
  for (const Expr* parameter : parameters) {
    out.parameters.push_back(type_of(*parameter));
    good = good && !is_error(out.parameters.back());
  }
  return good;
}

bool TypeReader::read_signature_text(std::string_view text, const std::string& what, Place place,
                                     SignatureTypes& out) {
  const SourceText source(text, what);
  Report inner(source);
  const std::vector<Token> tokens = read_tokens(source, inner);
  bool good = true;
  if (text.find_first_not_of(" \t") != std::string_view::npos) {
    const Expr* expr = Parser(tokens, source, file_.arena, inner).parse_only_expression();
    if (!inner.failed()) {
      // Places of the other report refer to another text, so errors are reported at this text's place.
      std::swap(file_.report, inner);
      good = read_signature(*expr, out);
      std::swap(file_.report, inner);
    }
  }
  for (const Diagnostic& diagnostic : inner.diagnostics())
    file_.report.error(place_in(file_.source, place, text, diagnostic.span), "signature",
                       fmt::format("in {} '{}': {}", what, text, diagnostic.message), diagnostic.hint);
  return good && !inner.failed();
}

/// np.dtype([('x', np.float32), ('y', 'i4', (3,))], align=True)
Value TypeReader::record_dtype(const Expr& fields, bool align) {
  Value value;
  value.kind = Kind::dtype;
  if (fields.kind != ExprKind::list) {
    value.type = element_type(fields);
    return value.type != nullptr ? value : Value::computed();
  }
  std::vector<Field> list;
  std::uint32_t offset = 0, widest = 1;
  for (const Expr* item : fields.items) {
    const std::size_t parts = item->items.size();
    if (item->kind != ExprKind::tuple || parts < 2 || parts > 3 || item->items[0]->kind != ExprKind::string)
      return Value::host("a record type that only Python computes");
    Field field{std::string(item->items[0]->name), element_type(*item->items[1]), 0, {}};
    const auto shape =
        parts == 3 ? shape_of(evaluator_.evaluate(*item->items[2])) : std::vector<std::int64_t>{};
    if (field.type == nullptr || !shape || !fits_record(*shape, field.type))
      return Value::host("a record type that only Python computes");
    field.shape = *shape;
    const std::uint32_t alignment = alignment_of(field.type);
    if (align) offset = (offset + alignment - 1) / alignment * alignment;
    widest = std::max(widest, alignment);
    field.offset = offset;
    offset += size_of(field);
    list.push_back(std::move(field));
  }
  if (align) offset = (offset + widest - 1) / widest * widest;
  value.type = file_.types.record(std::move(list), offset);
  return value;
}

/// Reads np.float32, float32, 'f4', int, a record type or a list of its fields. Null for other expressions.
Type TypeReader::element_type(const Expr& expr) {
  if (expr.kind == ExprKind::list) return record_dtype(expr, false).type;
  const Value value = evaluator_.evaluate(expr);
  if (value.kind == Kind::dtype && (is_number(value.type) || is_record(value.type))) return value.type;
  if (value.kind == Kind::builtin) {
    const Rule rule = value.builtin->rule;
    return rule == Rule::to_int       ? file_.types.int64
           : rule == Rule::to_float   ? file_.types.float64
           : rule == Rule::to_bool    ? file_.types.boolean
           : rule == Rule::to_complex ? file_.types.complex128
                                      : nullptr;
  }
  if (value.kind != Kind::string) return nullptr;
  std::string_view word = value.text;
  if (!word.empty() && (word[0] == '<' || word[0] == '=' || word[0] == '|')) word.remove_prefix(1);
  const Type type = file_.types.scalar_named(word);
  return type == file_.types.none ? nullptr : type;
}

}  // namespace quern::frontend
