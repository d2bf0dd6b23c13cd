// SPDX-License-Identifier: Apache-2.0
// Constants that the host binds to names of the file's level. They are new names, or replace the file's own
// values.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "frontend/module/bindings.hpp"
#include "frontend/module/toplevel.hpp"
#include "quern/half.hpp"

namespace quern::frontend {
namespace {

template <class T>
T read(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Returns nothing for types that have no constants in the language.
std::optional<Value> number(Dtype dtype, const std::byte* bytes) {
  switch (dtype) {
    case Dtype::bool_:
      return Value::boolean(std::to_integer<int>(*bytes) != 0);
    case Dtype::int8:
      return Value::of(std::int64_t{read<std::int8_t>(bytes)});
    case Dtype::int16:
      return Value::of(std::int64_t{read<std::int16_t>(bytes)});
    case Dtype::int32:
      return Value::of(std::int64_t{read<std::int32_t>(bytes)});
    case Dtype::int64:
      return Value::of(read<std::int64_t>(bytes));
    case Dtype::uint8:
      return Value::of(std::int64_t{read<std::uint8_t>(bytes)});
    case Dtype::uint16:
      return Value::of(std::int64_t{read<std::uint16_t>(bytes)});
    case Dtype::uint32:
      return Value::of(std::int64_t{read<std::uint32_t>(bytes)});
    case Dtype::uint64:
      return Value::of(BigInteger::of_unsigned(read<std::uint64_t>(bytes)));
    case Dtype::float16:
      return Value::of(static_cast<double>(static_cast<float>(read<quern::float16>(bytes))));
    case Dtype::bfloat16:
      return Value::of(static_cast<double>(static_cast<float>(read<quern::bfloat16>(bytes))));
    case Dtype::float32:
      return Value::of(static_cast<double>(read<float>(bytes)));
    case Dtype::float64:
      return Value::of(read<double>(bytes));
    case Dtype::complex64:
      return Value::complex(static_cast<double>(read<float>(bytes)),
                            static_cast<double>(read<float>(bytes + sizeof(float))));
    case Dtype::complex128:
      return Value::complex(read<double>(bytes), read<double>(bytes + sizeof(double)));
    default:
      return std::nullopt;
  }
}

/// The types of Python's own numbers, which literals have too.
bool is_pythons(Dtype dtype) {
  return dtype == Dtype::bool_ || dtype == Dtype::int64 || dtype == Dtype::float64 ||
         dtype == Dtype::complex128;
}

Value constant_value(TypeTable& types, const abi::Constant& constant) {
  Value whole;
  const std::size_t size = size_bytes(constant.dtype);
  for (std::size_t at = 0; at + size <= constant.bytes.size(); at += size) {
    std::optional<Value> item = number(constant.dtype, constant.bytes.data() + at);
    if (!item) return whole;
    whole.items.push_back(std::move(*item));
  }
  if (constant.shape.empty() && !whole.items.empty()) {
    Value single = std::move(whole.items.front());
    if (!is_pythons(constant.dtype)) single.type = types.of(constant.dtype);
    return single;
  }
  whole.kind = Value::Kind::array;
  whole.type = types.of(constant.dtype);
  whole.shape = constant.shape;
  return whole;
}

/// True for a number or an array, as far as the value is known; false for a function, a class or a module.
bool may_be_bound(Bindings& bindings, const Binding& binding) {
  switch (binding.kind) {
    case Binding::Kind::function:
    case Binding::Kind::host_class:
      return false;
    case Binding::Kind::uncertain:
      return std::all_of(binding.choices.begin(), binding.choices.end(), [&](const Binding* each) {
        return each == nullptr || may_be_bound(bindings, *each);
      });
    case Binding::Kind::import: {
      const Value value = bindings.path_value(canonical(binding.path));
      return value.is_any_number() || (value.kind == Value::Kind::host && !is_known_module(binding.path));
    }
    default:
      return true;
  }
}

}  // namespace

void bind_constants(ModuleFile& file, Bindings& bindings, std::span<const abi::Constant> constants) {
  for (const abi::Constant& constant : constants) {
    const Binding* known = file.timeline.find(constant.name, kImported);
    const Place place = known == nullptr ? Place{} : known->place;
    const bool mentioned = std::any_of(file.tokens.begin(), file.tokens.end(), [&](const Token& token) {
      return token.kind == Tok::name && file.source.at(token.place) == constant.name;
    });
    const auto refuse = [&](const std::string& why, const std::string& hint) {
      const std::string message = fmt::format("cannot bind '{}': {}", constant.name, why);
      if (place.end > place.begin)
        file.report.error(place, "bind", message, hint);
      else
        file.report.error_of_file("bind", message, hint);
    };
    if (!mentioned) {
      refuse(fmt::format("nothing in {} has that name", file.source.file_name()),
             "bind a name that a kernel of the file uses");
      continue;
    }
    if (known != nullptr && !may_be_bound(bindings, *known)) {
      refuse("it is a function, a class, a module or a type of the file",
             "bind the name of a number or an array");
      continue;
    }
    Value value = constant_value(file.types, constant);
    if (value.kind == Value::Kind::unknown)
      refuse(fmt::format("kernels have no constants of {}", quern::name(constant.dtype)),
             "bind numbers or arrays of numbers");
    bindings.give(constant.name, std::move(value));
  }
}

}  // namespace quern::frontend
