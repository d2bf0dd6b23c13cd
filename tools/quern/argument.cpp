// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/argument.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include <quern/error.hpp>

#include "tools/quern/expression.hpp"
#include "tools/quern/makers.hpp"
#include "tools/quern/npy.hpp"

namespace tool {
namespace {

[[noreturn]] void fail(const std::string& message) { throw quern::Error(quern::ErrorCode::usage, message); }

/// "dir/x.npy[::2].T" -> "dir/x.npy" and "[::2].T"; nothing where no file is meant.
std::optional<std::pair<std::string, std::string_view>> split_file(std::string_view text) {
  constexpr std::string_view kSuffix = ".npy";
  for (std::size_t at = text.find(kSuffix); at != std::string_view::npos; at = text.find(kSuffix, at + 1)) {
    const std::string_view rest = text.substr(at + kSuffix.size());
    if (rest.empty() || rest.starts_with('[') || rest.starts_with(".T"))
      return std::pair{std::string(text.substr(0, at + kSuffix.size())), rest};
  }
  return std::nullopt;
}

/// The places that a slice picks along an axis, as Python's slice.indices.
struct Range {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
};

Range resolve(const Index& index, std::int64_t extent) {
  Range range;
  range.step = index.step.value_or(1);
  const std::int64_t low = range.step < 0 ? -1 : 0;
  const std::int64_t high = range.step < 0 ? extent - 1 : extent;
  const auto clamp = [&](std::int64_t value) {
    return std::clamp(value < 0 ? value + extent : value, low, high);
  };
  range.start = index.start ? clamp(*index.start) : (range.step < 0 ? high : low);
  const std::int64_t stop = index.stop ? clamp(*index.stop) : (range.step < 0 ? low : high);
  const std::int64_t span = range.step < 0 ? range.start - stop : stop - range.start;
  const std::uint64_t stride = range.step < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(range.step)
                                              : static_cast<std::uint64_t>(range.step);
  if (span > 0) range.count = static_cast<std::int64_t>((static_cast<std::uint64_t>(span) - 1) / stride + 1);
  return range;
}

void apply_place(HostArray& view, const HostArray& array, std::size_t axis, std::int64_t place,
                 const std::string& text) {
  const std::int64_t extent = array.shape[axis];
  if (place < -extent || place >= extent)
    fail(fmt::format("'{}': index {} is outside axis {}, which has {} elements", text, place, axis, extent));
  view.offset_bytes += (place < 0 ? place + extent : place) * array.strides_bytes[axis];
}

HostArray indexed(const HostArray& array, const std::vector<Index>& indices, const std::string& text) {
  const auto uses_axis = [](const Index& index) {
    return index.kind == Index::Kind::place || index.kind == Index::Kind::slice;
  };
  const auto used = static_cast<std::size_t>(std::count_if(indices.begin(), indices.end(), uses_axis));
  const auto dots = std::count_if(indices.begin(), indices.end(),
                                  [](const Index& i) { return i.kind == Index::Kind::ellipsis; });
  if (used > array.shape.size() || dots > 1)
    fail(fmt::format("'{}': there are more indices than the {} axes of the array", text, array.shape.size()));
  HostArray view = array;
  view.shape.clear();
  view.strides_bytes.clear();
  std::size_t axis = 0;
  const auto keep = [&](std::size_t count) {
    for (; count > 0; --count, ++axis) {
      view.shape.push_back(array.shape[axis]);
      view.strides_bytes.push_back(array.strides_bytes[axis]);
    }
  };
  for (const Index& index : indices) {
    if (index.kind == Index::Kind::ellipsis) keep(array.shape.size() - used);
    if (index.kind == Index::Kind::place) apply_place(view, array, axis++, *index.start, text);
    if (index.kind == Index::Kind::new_axis) {
      view.shape.push_back(1);
      view.strides_bytes.push_back(0);
    }
    if (index.kind != Index::Kind::slice) continue;
    const Range range = resolve(index, array.shape[axis]);
    view.shape.push_back(range.count);
    view.strides_bytes.push_back(range.count > 1 ? range.step * array.strides_bytes[axis]
                                                 : array.strides_bytes[axis]);
    if (range.count > 0) view.offset_bytes += range.start * array.strides_bytes[axis];
    ++axis;
  }
  keep(array.shape.size() - axis);
  return view;
}

class Evaluator {
 public:
  Evaluator(const std::vector<std::string>& texts, const std::filesystem::path& folder)
      : texts_(texts),
        folder_(folder),
        values_(texts.size()),
        busy_(texts.size(), false),
        lookup_([this](std::size_t argument, std::string_view attribute, std::size_t axis) {
          return length_of(argument, attribute, axis);
        }) {}

  std::vector<ArgumentValue> run() {
    std::vector<ArgumentValue> results;
    for (std::size_t i = 0; i < texts_.size(); ++i) results.push_back(value(i));
    return results;
  }

 private:
  const ArgumentValue& value(std::size_t index) {
    if (values_[index]) return *values_[index];
    if (busy_[index]) fail(fmt::format("argument #{} ('{}') needs its own length", index, texts_[index]));
    busy_[index] = true;
    values_[index] = evaluate(texts_[index]);
    return *values_[index];
  }

  Number length_of(std::size_t index, std::string_view attribute, std::size_t axis) {
    if (index >= texts_.size())
      fail(fmt::format("'#{}' means argument {}, but there are {} arguments, counted from 0", index, index,
                       texts_.size()));
    const HostArray* array = std::get_if<HostArray>(&value(index));
    if (array == nullptr)
      fail(fmt::format("'#{}' means the length of argument {} ('{}'), which is no array", index, index,
                       texts_[index]));
    if (attribute == "size") return Number::natural(array->size());
    if (axis >= array->shape.size())
      fail(fmt::format("argument #{} ('{}') has {} axes, there is no axis {}", index, texts_[index],
                       array->shape.size(), axis));
    return Number::integer(array->shape[axis]);
  }

  ArgumentValue evaluate(const std::string& text) {
    constexpr std::string_view kValue = "value(";
    if (text.starts_with(kValue) && text.ends_with(')'))
      return struct_value(text.substr(kValue.size(), text.size() - kValue.size() - 1));
    if (const auto file = split_file(text)) return from_file(file->first, file->second, text);
    const Expression expression = read_expression(text, lookup_);
    switch (expression.kind) {
      case Expression::Kind::number:
        return scalar(expression.number, dtype_of(expression.number), text);
      case Expression::Kind::call:
        return from_call(*expression.call, text);
      case Expression::Kind::tuple:
        fail(fmt::format("'{}' is a tuple, which no kernel takes", text));
      case Expression::Kind::name:
        break;
    }
    fail(fmt::format("'{}' is not an argument; {}", text, argument_help()));
  }

  HostArray from_file(const std::string& name, std::string_view rest, const std::string& text) {
    const std::filesystem::path path =
        std::filesystem::path(name).is_absolute() ? std::filesystem::path(name) : folder_ / name;
    quern::Expected<HostArray> read = read_npy(path);
    if (!read) {
      const quern::Diagnostic& problem = read.errors().front();
      throw quern::Error(quern::ErrorCode::io, fmt::format("{}; {}", problem.message, problem.hint),
                         read.errors());
    }
    HostArray array = *std::move(read);
    while (!rest.empty()) {
      if (rest.starts_with(".T")) {
        array = array.transposed();
        rest.remove_prefix(2);
        continue;
      }
      const std::size_t close = rest.find(']');
      if (!rest.starts_with('[') || close == std::string_view::npos)
        fail(fmt::format("'{}': '{}' is no slice and no .T", text, rest));
      array = indexed(array, read_indices(rest.substr(1, close - 1), lookup_), text);
      rest.remove_prefix(close + 1);
    }
    return array;
  }

  ArgumentValue struct_value(const std::string& text) {
    const auto file = split_file(text);
    if (!file) fail(fmt::format("'value({})': value(...) takes a .npy file with one element", text));
    const HostArray array = from_file(file->first, file->second, text);
    if (array.size() != 1)
      fail(fmt::format("'value({})': the array has {} elements where one is passed by value", text,
                       array.size()));
    const std::byte* bytes = array.element_at(0);
    if (array.element.dtype) return read_back(*array.element.dtype, bytes);
    return StructValue{array.element, std::vector<std::byte>(bytes, bytes + array.element.size_bytes)};
  }

  static ScalarValue read_back(quern::Dtype dtype, const std::byte* bytes) {
    ScalarValue value;
    value.dtype = dtype;
    std::memcpy(value.bytes.data(), bytes, quern::size_bytes(dtype));
    return value;
  }

  ScalarValue scalar(const Number& number, quern::Dtype dtype, const std::string& text) {
    ScalarValue value;
    value.dtype = dtype;
    if (const std::optional<std::string> problem = write_number(number, dtype, value.bytes.data()))
      fail(fmt::format("'{}': {}", text, *problem));
    return value;
  }

  ArgumentValue from_call(const Call& call, const std::string& text) {
    if (const std::optional<quern::Dtype> dtype = quern::dtype_named(call.name))
      return scalar(typed_number(call, text), *dtype, text);
    try {
      if (std::optional<HostArray> array = make_from_call(call)) return *std::move(array);
    } catch (const quern::Error& error) {
      throw quern::Error(error.code(), fmt::format("'{}': {}", text, error.what()));
    }
    fail(fmt::format("'{}': there is no {}(...); {}", text, call.name, argument_help()));
  }

  static Number typed_number(const Call& call, const std::string& text) {
    const bool two = call.positional.size() == 2 && call.name.starts_with("complex");
    if ((call.positional.size() != 1 && !two) || !call.keywords.empty())
      fail(fmt::format("'{}': a typed scalar is written {}(number)", text, call.name));
    for (const Expression& expression : call.positional)
      if (expression.kind != Expression::Kind::number)
        fail(fmt::format("'{}': {} needs a number", text, call.name));
    if (!two) return call.positional[0].number;
    return Number::complex({call.positional[0].number.as_double(), call.positional[1].number.as_double()});
  }

  const std::vector<std::string>& texts_;
  const std::filesystem::path& folder_;
  std::vector<std::optional<ArgumentValue>> values_;
  std::vector<bool> busy_;
  const Lookup lookup_;
};

}  // namespace

std::vector<ArgumentValue> evaluate_arguments(const std::vector<std::string>& texts,
                                              const std::filesystem::path& folder) {
  return Evaluator(texts, folder).run();
}

const char* argument_help() noexcept {
  return "an argument is a number (3, -2.5, true, float32(2)), a file (x.npy, 'x.npy[::2, 1:]', x.npy.T, "
         "value(x.npy)), the length "
         "of another argument (#2), or zeros, ones, empty (shape, dtype), full(shape, value, dtype), "
         "arange([start,] stop[, step], "
         "dtype), linspace(start, stop, num, dtype), random(shape, dtype, seed=N)";
}

}  // namespace tool
