// SPDX-License-Identifier: Apache-2.0
// Rows of sums, and of one element a thread.
#include "slots.hpp"

namespace quern::bench {

using enum Dtype;

std::vector<Row> sum_rows() {
  const std::size_t sums = kVector / kReduceBlock, half = kVector / 2;
  const std::vector<Slot> reduction{in(float32, kVector, floats(0, 1)), out(float32, sums, {.error = 1e-5})};
  const std::vector<Native> blocks{QUERN_BOTH(block_sums)};
  // clang-format off
  return {
      {"reduce_tree", "block reduction, tree in shared memory", "reduce.cu", "reduce_tree", sums, 256, 1024,
       reduction, sums, blocks, reference::block_sums, sums, 18},
      {"reduce_shuffle", "block reduction, shuffles", "reduce.cu", "reduce_shuffle", sums, 256, 0, reduction,
       sums, blocks, nullptr, 0, 30},
      {"reduce_groups", "block reduction, cooperative groups", "reduce.cu", "reduce_groups", sums, 256, 0,
       reduction, sums, blocks, nullptr, 0, 10},
      {"cub_block_reduce", "CUB BlockReduce", "collectives.cu", "cub_block_reduce", kVector / kCubBlock, 256,
       0, {in(float32, kVector, floats(0, 1)), out(float32, kVector / kCubBlock, {.error = 1e-5})},
       kVector / kCubBlock, {QUERN_BOTH(cub_sums)}, nullptr, 0, 5},
      {"cub_block_scan", "CUB BlockScan", "collectives.cu", "cub_block_scan", half / kCubBlock, 256, 0,
       {in(int32, half, ints(-1000, 1000)), out(int32, half)}, half / kCubBlock,
       {QUERN_BOTH(cub_scan_blocks)}, reference::cub_scan_blocks, half / kCubBlock, 15},
      {"cub_warp_reduce", "CUB WarpReduce", "collectives.cu", "cub_warp_reduce", kVector / 256, 256, 0,
       {in(int32, kVector, ints(-1000, 1000)), out(int32, kVector / 32)}, kVector / 512,
       {QUERN_BOTH(warp_sums)}, reference::warp_sums, kVector / 512, 2},
      {"scan", "running sums in shared memory", "counting.cu", "scan", kScan / kScanBlock, kScanBlock, 0,
       {in(int32, kScan, ints(-1000, 1000)), out(int32, kScan)}, kScan / kScanBlock,
       {QUERN_BOTH(scan_steps)}, reference::scan_blocks, kScan / kScanBlock, 14, bench::strict::scan_blocks},
      {"py_dot", "dot product in Python", "idioms.py", "dot", 256, 256, 0, {in(float32, half, floats(0, 1)),
       in(float32, half, floats(0, 1)), state(float32, 1, {}, {.error = 1e-4})}, half / 1024,
       {QUERN_BOTH(dot)}, nullptr, 0, 60},
  };
  // clang-format on
}

std::vector<Row> map_rows() {
  const std::vector<Slot> prices{in(float32, kOptions, floats(5, 30)),
                                 in(float32, kOptions, floats(1, 100)),
                                 in(float32, kOptions, floats(0.25, 10)),
                                 number(float32, kRate),
                                 number(float32, kVolatility),
                                 out(float32, kOptions, {.error = 1e-4}),
                                 out(float32, kOptions, {.error = 1e-4}),
                                 count(kOptions)};
  const Tolerance rim{.fraction = 0.02};  // products are fused differently: points at the edge of the set
  const std::size_t points = kPicture * kPicture, blocks = kPicture / 16;
  const std::vector<Native> escape{QUERN_BOTH(mandelbrot)};
  // clang-format off
  return {
      {"saxpy", "saxpy, one element a thread", "maps.cu", "saxpy", kVector / 256, 256, 0, {count(kVector),
       number(float32, kSlope), in(float32, kVector, floats(-1, 1)),
       out(float32, kVector, {.error = 1e-6}, floats(1, 2))}, kVector / 1024, {QUERN_BOTH(saxpy)}, nullptr,
       0, 1.5},
      {"grid_stride", "polynomial, grid-stride loop", "maps.cu", "grid_stride", 256, 256, 0, {count(kVector),
       in(float32, kVector, floats(-1, 1)), out(float32, kVector, {.error = 1e-6})}, kVector / 1024,
       {QUERN_BOTH(polynomial)}, nullptr, 0, 4.5},
      {"half_axpy", "a x + y of __half2", "maps.cu", "half_axpy", kHalves / 512, 256, 0, {count(kHalves / 2),
       number(float32, kSlope), in(float16, kHalves, halves(-1, 1)),
       out(float16, kHalves, {.error = 1e-3}, halves(1, 2))}, kHalves / 1024, {QUERN_BOTH(half_axpy)},
       nullptr, 0, 4},
      {"half_gemv", "matrix times vector of halves, a warp a row", "maps.cu", "half_gemv", kHalfSide / 8,
       256, 0, {count(kHalfSide), in(float16, kHalfSide * kHalfSide, halves(-1, 1)),
       in(float16, kHalfSide, halves(-1, 1)), out(float32, kHalfSide, {.error = 1e-4})}, kHalfSide,
       {QUERN_BOTH(half_gemv)}, nullptr, 0, 24},
      {"black_scholes", "Black-Scholes", "../../../../kernels/finance/black_scholes.cu", "black_scholes", kOptions / 256, 256, 0,
       prices, kOptions / 1024, {QUERN_BOTH(black_scholes)}, reference::black_scholes, kOptions / 1024, 2.0},
      {"mandelbrot", "mandelbrot", "../../../../kernels/fractals/mandelbrot.cu", "mandelbrot", {blocks, blocks}, {16, 16}, 0,
       {out(int32, points, rim), count(kPicture), count(kPicture), count(kEscapeLimit)}, kPicture, escape,
       reference::mandelbrot, 64, 2.0},
      {"py_mandelbrot", "mandelbrot in Python", "../../../../kernels/fractals/mandelbrot.py", "mandelbrot", {blocks, blocks},
       {16, 16}, 0,
       {out(int32, Shape{extent(kPicture), extent(kPicture)}, rim), count(kEscapeLimit)}, kPicture, escape,
       nullptr, 0, 2.0},
      {"py_inside", "points in a quarter circle in Python", "idioms.py", "inside", kWalkers / 256, 256, 0,
       {count(kTrials), out(int32, kWalkers, {.error = 0.01})}, kWalkers / 32, {QUERN_BOTH(inside)},
       reference::inside, kWalkers / 32, 3},
  };
  // clang-format on
}

}  // namespace quern::bench
