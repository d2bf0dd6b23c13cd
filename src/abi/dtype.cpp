// SPDX-License-Identifier: Apache-2.0
#include "quern/dtype.hpp"

namespace quern {
namespace {
struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  std::size_t size_bytes;
};
constexpr DtypeRow kRows[] = {
    {Dtype::bool_, "bool", 1},      {Dtype::int8, "int8", 1},           {Dtype::int16, "int16", 2},
    {Dtype::int32, "int32", 4},     {Dtype::int64, "int64", 8},         {Dtype::uint8, "uint8", 1},
    {Dtype::uint16, "uint16", 2},   {Dtype::uint32, "uint32", 4},       {Dtype::uint64, "uint64", 8},
    {Dtype::float16, "float16", 2}, {Dtype::bfloat16, "bfloat16", 2},   {Dtype::float32, "float32", 4},
    {Dtype::float64, "float64", 8}, {Dtype::complex64, "complex64", 8}, {Dtype::complex128, "complex128", 16},
};
}  // namespace

std::size_t size_bytes(Dtype dtype) noexcept { return kRows[static_cast<std::size_t>(dtype)].size_bytes; }
std::string_view name(Dtype dtype) noexcept { return kRows[static_cast<std::size_t>(dtype)].name; }

std::optional<Dtype> dtype_named(std::string_view name) noexcept {
  for (const DtypeRow& row : kRows)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

}  // namespace quern
