// SPDX-License-Identifier: Apache-2.0
// Rows of tiles in shared memory, and of a block or warp a row.
#include "slots.hpp"

namespace quern::bench {

using enum Dtype;

namespace {

Row sparse(const char* name, const char* what, std::size_t rows, std::size_t least, std::size_t most,
           std::size_t threads_a_row) {
  const std::vector<std::int32_t> begins = row_begins(rows, least, most);
  const auto elements = static_cast<std::size_t>(begins.back());
  return {name,
          what,
          "rows.cu",
          name,
          rows * threads_a_row / 256,
          256,
          0,
          {count(rows), in(int32, rows + 1, fill_with(begins)),
           in(int32, elements, ints(0, extent(kColumns))), in(float32, elements, floats(-1, 1)),
           in(float32, kColumns, floats(-1, 1)), out(float32, rows, {.error = 1e-4})},
          rows,
          {QUERN_BOTH(csr), bench::strict::csr_gather},
          reference::csr,
          rows,
          8};
}

}  // namespace

std::vector<Row> tile_rows() {
  const std::size_t square = kSide * kSide, product = kMatrix * kMatrix, image = kImage * kImage;
  const Shape matrix{extent(kMatrix), extent(kMatrix)}, plane{extent(kSide), extent(kSide)};
  const Fill numbers = floats(-1, 1);
  const Tolerance rounded{.error = 1e-4};
  const std::vector<Native> matmul{QUERN_BOTH(matmul)}, stencil{QUERN_BOTH(stencil)};
  const std::size_t softmax = kSoftmaxRow * kSoftmaxRows, norm = kNormRow * kNormRows;
  // clang-format off
  return {
      {"transpose", "transpose, tile of 32 x 33", "tiles.cu", "transpose", {kSide / 32, kSide / 32}, {32, 8},
       0, {in(float32, square, numbers), out(float32, square), count(kSide)}, kSide / 64,
       {QUERN_BOTH(transpose)}, reference::transpose, kSide / 64, 8},
      {"matmul", "matrix product, tiles of 16 x 16", "tiles.cu", "matmul", {kMatrix / 16, kMatrix / 16},
       {16, 16}, 0, {in(float32, product, numbers), in(float32, product, numbers),
       out(float32, product, rounded), count(kMatrix)}, kMatrix / 32, matmul, reference::matmul, 4, 3},
      {"py_matmul", "matrix product in Python", "idioms.py", "fast_matmul", {kMatrix / 16, kMatrix / 16},
       {16, 16}, 0, {in(float32, matrix, numbers), in(float32, matrix, numbers),
       out(float32, matrix, rounded)}, kMatrix / 32, matmul, nullptr, 0, 8},
      {"stencil", "5-point stencil, 32 x 8 threads", "tiles.cu", "stencil", {kSide / 32, kSide / 8}, {32, 8},
       0, {in(float32, square, numbers), out(float32, square, {.error = 1e-6}), count(kSide), count(kSide)},
       kSide, stencil, reference::stencil, kSide, 3},
      {"py_laplace", "5-point stencil in Python", "idioms.py", "laplace", {kSide / 32, kSide / 8}, {32, 8},
       0, {in(float32, plane, numbers), out(float32, plane, {.error = 1e-6})}, kSide, stencil, nullptr, 0, 3},
      {"nbody", "n bodies by tiles", "tiles.cu", "nbody", kBodies / 256, 256, 0,
       {in(float32, 4 * kBodies, floats(0, 1)), out(float32, 4 * kBodies, {.error = 1e-3}), count(kBodies),
       number(float32, kSoftening)}, kBodies / 32, {QUERN_BOTH(nbody)}, reference::nbody, 16, 2},
      {"convolve", "7 x 7 filter, tile with a rim", "tiles.cu", "convolve", {kImage / 16, kImage / 16},
       {16, 16}, 0, {in(float32, image, numbers), out(float32, image, {.error = 1e-3}), count(kImage),
       count(kImage)}, kImage / 64, {QUERN_BOTH(convolve)}, reference::convolve, 8, 4},
      {"softmax", "softmax, a block a row of 1,000", "rows.cu", "softmax", kSoftmaxRows, 256, 0,
       {in(float32, softmax, floats(-4, 4)), out(float32, softmax, {.error = 1e-6}), count(kSoftmaxRow)},
       kSoftmaxRows, {QUERN_BOTH(softmax)}, reference::softmax, 512, 8},
      {"layer_norm", "layer norm, a warp a row", "rows.cu", "layer_norm", kNormRows / 8, 256, 0,
       {in(float32, norm, floats(-1, 1)), in(float32, kNormRow, floats(0.5, 2)),
       in(float32, kNormRow, floats(-1, 1)), out(float32, norm, rounded), count(kNormRow),
       number(float32, kNormEpsilon)}, kNormRows, {QUERN_BOTH(layer_norm)}, reference::layer_norm, 512, 30},
      sparse("csr_scalar", "sparse product, a thread a row", kScalarRows, 8, 24, 1),
      sparse("csr_vector", "sparse product, a warp a row", kVectorRows, 64, 192, 32),
  };
  // clang-format on
}

}  // namespace quern::bench
