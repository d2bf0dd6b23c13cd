// SPDX-License-Identifier: Apache-2.0
#include "arrays/npy.hpp"

#include <fmt/format.h>
#include <quern/error.hpp>
#include <quern/ndarray.hpp>

#include <cstring>

namespace quern::cli {

Array read_npy(const std::string& path) {
  const NDArray file = NDArray::load_npy(path);
  ElementType element = file.element();
  if (element.size_bytes == 0)
    throw Error(ErrorCode::io,
                fmt::format("{} is not a readable .npy file: its elements have no bytes", path));
  if (element == ElementType::opaque(2))
    element = Dtype::bfloat16;  // from a writer that lost ml_dtypes' "<V2"
  const std::span<const std::int64_t> shape = file.shape(), strides = file.layout().strides_bytes();
  Array array = make_array({element.dtype, element, element.size_bytes}, {shape.begin(), shape.end()});
  array.strides.assign(strides.begin(), strides.end());
  if (file.size_bytes() > 0) std::memcpy(array.bytes->data(), file.data(), file.size_bytes());
  return array;
}

void write_npy(const std::string& path, const Array& given) {
  const Array array = contiguous(given);
  const Order order = array.c_contiguous() ? Order::c : Order::f;
  NDArray(nullptr, array.data(), array.element.type, Layout(array.shape, array.element.size_bytes, order))
      .save_npy(path);
}

}  // namespace quern::cli
