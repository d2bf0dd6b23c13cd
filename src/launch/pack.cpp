// SPDX-License-Identifier: Apache-2.0
#include "launch/pack.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>

#include "abi/convert.hpp"
#include "quern/cuda/array.cuh"
#include "quern/error.hpp"

namespace quern::launch {
namespace {

std::string argument_text(const Argument& argument) {
  switch (argument.kind()) {
    case Argument::Kind::scalar:
      return "the scalar " + abi::scalar_text(*argument.dtype(), argument.data());
    case Argument::Kind::array:
      return fmt::format("a device array of {} with shape {}", to_string(argument.array()->element()),
                         shape_text(argument.array()->shape()));
    case Argument::Kind::pointer:
      return "a device address";
    case Argument::Kind::bytes:
      return fmt::format("a struct of {} bytes", argument.size());
    case Argument::Kind::host:
      return "a host array of " + describe(argument.host()->array);
    case Argument::Kind::smart:
      return "a SmartArray of " + to_string(argument.smart()->element());
  }
  return {};
}

[[noreturn]] void refuse(Diagnostic diagnostic) {
  diagnostic.code = "arguments";
  std::string text = to_string(diagnostic);
  constexpr std::string_view kPrefix = "error: ";
  if (text.starts_with(kPrefix)) text.erase(0, kPrefix.size());
  if (text.ends_with('\n')) text.pop_back();
  throw Error(ErrorCode::usage, text, {std::move(diagnostic)});
}

[[noreturn]] void refuse_count(const Signature& signature, std::size_t given) {
  const std::size_t wanted = signature.parameters.size();
  Diagnostic diagnostic;
  diagnostic.message = fmt::format("kernel {} takes {} argument{}, {} {} given", signature.kernel, wanted,
                                   wanted == 1 ? "" : "s", given, given == 1 ? "was" : "were");
  diagnostic.source_line = signature.text;
  diagnostic.hint = "give one argument for each parameter, in this order";
  refuse(std::move(diagnostic));
}

[[noreturn]] void refuse_argument(const Signature& signature, std::size_t index, const Argument& argument,
                                  const std::string& reason, std::string hint) {
  const std::string& wanted = signature.parameters[index].shown;
  Diagnostic diagnostic;
  diagnostic.message =
      fmt::format("argument #{} of kernel {} does not fit: it is {}, the parameter is '{}'{}{}", index,
                  signature.kernel, argument_text(argument), wanted, reason.empty() ? "" : "; ", reason);
  diagnostic.source_line = signature.text;
  diagnostic.span.column = static_cast<std::uint32_t>(signature.columns[index] + 1);
  diagnostic.span.end_column = static_cast<std::uint32_t>(signature.columns[index] + 1 + wanted.size());
  diagnostic.hint = std::move(hint);
  refuse(std::move(diagnostic));
}

bool is_byte(const std::optional<Dtype>& dtype) { return dtype == Dtype::int8 || dtype == Dtype::uint8; }

void check_pointee(const Signature& signature, std::size_t index, const Argument& argument) {
  const ParameterPlan& plan = signature.parameters[index];
  if (!plan.dtype || plan.dtype == argument.dtype()) return;
  if (plan.any_bytes && is_byte(argument.dtype())) return;
  const std::string wanted(name(*plan.dtype));
  refuse_argument(
      signature, index, argument, "",
      argument.dtype()
          ? fmt::format("give an array of {}, or declare the parameter for {}", wanted,
                        name(*argument.dtype()))
          : fmt::format(
                "give an array of {}, or pass the address (array.data()) to use the bytes as they are",
                wanted));
}

/// For a plain pointer, kernels get the address of the first element, and expect the others to follow in C
/// order.
void check_order(const Signature& signature, std::size_t index, const Argument& argument) {
  if (argument.kind() != Argument::Kind::array || argument.array()->is_c_contiguous()) return;
  const DeviceNDArray& array = *argument.array();
  refuse_argument(
      signature, index, argument,
      fmt::format("its strides are {} bytes, and a pointer has no strides",
                  shape_text(array.strides_bytes())),
      fmt::format("give a copy() in C order, declare the parameter quern::array<T, {}>, or pass the "
                  "address (array.data()) to use the memory as it is",
                  array.ndim()));
}

/// Accepts read-only memory only if the source says that the kernel does not write to it. PTX does not say
/// so: a caller who knows that passes the address.
void check_read_only(const Signature& signature, std::size_t index, const Argument& argument) {
  const ParameterPlan& plan = signature.parameters[index];
  if (argument.kind() != Argument::Kind::array || plan.read_only || plan.takes == Takes::scalar ||
      !argument.array()->is_read_only())
    return;
  const bool says = plan.takes == Takes::pointer || plan.takes == Takes::device_array;
  refuse_argument(signature, index, argument, "it is read-only, and the kernel could write to it",
                  says ? "declare the parameter const, or give a copy()"
                       : "give a copy(), or the address (array.data()) if the kernel only reads");
}

/// True if the strides are those of a contiguous array of that layout; any stride matches an extent of 1.
bool has_layout(const DeviceNDArray& array, char layout) {
  if (layout == 'A' || array.size() == 0) return true;
  auto expected = static_cast<std::int64_t>(array.element().size_bytes);
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    const std::size_t axis = layout == 'C' ? array.ndim() - 1 - i : i;
    if (array.shape()[axis] != 1 && array.strides_bytes()[axis] != expected) return false;
    expected *= array.shape()[axis];
  }
  return true;
}

/// Integers of one size, whose bits are the same if the sign is ignored.
bool is_same_word(Dtype a, Dtype b) {
  return abi::is_integer(a) && abi::is_integer(b) && size_bytes(a) == size_bytes(b);
}

constexpr std::size_t array_struct_bytes(std::size_t ndim) { return 8 + 16 * ndim; }
// The struct that kernels are compiled with, from the same header.
using Cube = array<char, 3>;
static_assert(sizeof(Cube) == array_struct_bytes(3) && sizeof(array<double, 0>) == array_struct_bytes(0));
static_assert(offsetof(Cube, data) == 0 && offsetof(Cube, extents) == 8 &&
              offsetof(Cube, strides_bytes) == 32);

}  // namespace

PackedArguments::PackedArguments(const Signature& signature, std::span<const Argument> arguments) {
  if (arguments.size() != signature.parameters.size()) refuse_count(signature, arguments.size());
  pointers_ = inline_pointers_.data();
  scratch_ = inline_scratch_.data();
  if (arguments.size() > kInlinePointers) {
    more_pointers_ = std::make_unique_for_overwrite<void*[]>(arguments.size());
    pointers_ = more_pointers_.get();
  }
  if (signature.scratch_bytes > kInlineScratch) {
    more_scratch_ = std::make_unique_for_overwrite<std::byte[]>(signature.scratch_bytes);
    scratch_ = more_scratch_.get();
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    pointers_[i] = const_cast<void*>(parameter(signature, i, arguments[i]));
    has_memory_ = has_memory_ || arguments[i].buffer() != nullptr;
  }
}

std::byte* PackedArguments::take(std::size_t bytes) noexcept {
  std::byte* const taken = scratch_;
  scratch_ += (bytes + 15) & ~std::size_t{15};
  return taken;
}

/// The address from which the driver reads argument `index`. Decides which argument fits which parameter.
const void* PackedArguments::parameter(const Signature& signature, std::size_t index,
                                       const Argument& argument) {
  using Kind = Argument::Kind;
  const ParameterPlan& plan = signature.parameters[index];
  check_read_only(signature, index, argument);
  switch (plan.takes) {
    case Takes::pointer:
      check_order(signature, index, argument);
      if (argument.kind() == Kind::array)
        check_pointee(signature, index, argument);
      else if (argument.kind() != Kind::pointer)
        refuse_argument(signature, index, argument, "",
                        "give a device array (session.to_device), a buffer or a device address");
      return argument.data();
    case Takes::scalar:
      if (argument.kind() == Kind::scalar)
        return convert(signature, index, argument, *plan.dtype, plan.any_sign);
      if (argument.kind() == Kind::bytes && argument.size() == plan.size) return argument.data();
      refuse_argument(signature, index, argument, "", fmt::format("give one {} value", name(*plan.dtype)));
    case Takes::word:
      check_order(signature, index, argument);
      if (argument.kind() == Kind::array || argument.kind() == Kind::pointer) return argument.data();
      if (argument.kind() == Kind::scalar && abi::is_integer(*argument.dtype()))
        return convert(signature, index, argument, Dtype::uint64, true);
      refuse_argument(signature, index, argument, "",
                      "give a device array, a device address or a whole number");
    case Takes::device_array:
      return pack_array(signature, index, argument);
    case Takes::opaque:
      break;
  }
  if (argument.kind() == Kind::array && plan.size == array_struct_bytes(argument.array()->ndim()) &&
      plan.size != 8)
    return pack_array(signature, index, argument);
  check_order(signature, index, argument);
  if (argument.size() == plan.size) return argument.data();
  refuse_argument(signature, index, argument,
                  fmt::format("{} bytes are needed, {} were given", plan.size, argument.size()),
                  "give a value of that size: cast a scalar to the parameter's type, or pass a struct laid "
                  "out as the kernel's");
}

const void* PackedArguments::convert(const Signature& signature, std::size_t index, const Argument& argument,
                                     Dtype target, bool any_sign) {
  if (argument.dtype() == target || (any_sign && is_same_word(*argument.dtype(), target)))
    return argument.data();
  std::byte* const out = take(16);
  if (const std::optional<std::string> problem =
          abi::convert_scalar(*argument.dtype(), argument.data(), target, any_sign, out))
    refuse_argument(signature, index, argument, *problem, fmt::format("give a {} value", name(target)));
  return out;
}

/// quern::array<T, N>: {T* data; int64 extents[N]; int64 strides_bytes[N]}.
const void* PackedArguments::pack_array(const Signature& signature, std::size_t index,
                                        const Argument& argument) {
  const ParameterPlan& plan = signature.parameters[index];
  if (argument.kind() != Argument::Kind::array)
    refuse_argument(signature, index, argument, "", "give a device array (session.to_device)");
  const DeviceNDArray& array = *argument.array();
  if (plan.takes == Takes::device_array) check_pointee(signature, index, argument);
  if (plan.size != array_struct_bytes(array.ndim()))
    refuse_argument(signature, index, argument,
                    fmt::format("the parameter has {} dimensions, the array {}", plan.ndim, array.ndim()),
                    "give an array of that many dimensions");
  if (!has_layout(array, plan.layout))
    refuse_argument(
        signature, index, argument,
        fmt::format("the parameter takes arrays in {} order", plan.layout == 'C' ? "C" : "Fortran"),
        "give a contiguous array of that order, or declare the parameter for any: float32[:, :]");
  std::byte* const out = take(plan.size);
  const void* const data = array.data();
  std::memcpy(out, &data, 8);
  if (array.ndim() > 0) {
    std::memcpy(out + 8, array.shape().data(), 8 * array.ndim());
    std::memcpy(out + 8 + 8 * array.ndim(), array.strides_bytes().data(), 8 * array.ndim());
  }
  return out;
}

}  // namespace quern::launch
