// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/kernel_request.hpp"
#include "quern/dtype.hpp"

namespace quern::launch {

/// The kind of argument that a parameter accepts, according to its type.
enum class Takes : std::uint8_t {
  pointer,       ///< an address; `dtype` is the pointee's, if known
  scalar,        ///< one value of `dtype`
  word,          ///< 8 bytes of PTX that are an address or an integer
  device_array,  ///< quern::array<dtype, ndim>, c_array or f_array by value
  opaque,        ///< `size` bytes
};

/// The launcher's description of a parameter.
struct ParameterPlan {
  Takes takes = Takes::opaque;
  std::optional<Dtype> dtype;
  bool any_sign = false;   ///< PTX's .u32 holds int and unsigned alike
  bool read_only = false;  ///< a pointer to const, or an array of const elements
  bool any_bytes = false;  ///< a `char*` points to signed and unsigned bytes alike
  std::size_t ndim = 0;
  char layout = 'A';  ///< of a device array: 'C' and 'F' take contiguous ones
  std::size_t offset = 0;
  std::size_t size = 0;
  std::string shown;  ///< "const float* x", ".u64", "12 bytes"
};

/// Reads the type that the source or the PTX gives the parameter.
ParameterPlan plan_parameter(const abi::ParameterInfo& parameter);

/// All parameters of a kernel, and the text of its signature.
struct Signature {
  std::string kernel;
  std::vector<ParameterPlan> parameters;
  std::string text;                  ///< "saxpy(int n, float a, const float* x, float* y)"
  std::vector<std::size_t> columns;  ///< the start of each parameter in `text`, from 0
  std::size_t scratch_bytes = 0;     ///< bound of the size of converted arguments
};

Signature read_signature(const abi::EntryInfo& entry);

/// The Dtype of a C++ or PTX scalar type's name without qualifiers: "unsigned int", "std::int64_t", "__half".
std::optional<Dtype> dtype_of_type(std::string_view type);

}  // namespace quern::launch
