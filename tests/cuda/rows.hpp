// SPDX-License-Identifier: Apache-2.0
// Loops over rows of different lengths, "a thread a row": the data, and functions whose text is compiled for
// the host and for the device.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "harness.hpp"

// The texts below compute with the types of the device's code; casts for the host's warnings would hide what
// they test.
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
#pragma GCC diagnostic ignored "-Wdouble-promotion"
#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace quern::cuda_test::rows {

/// Defines `...` for the host, and its text as `name` for the device. The option -default-device makes
/// device functions of functions without an attribute.
#define QUERN_BOTH(name, ...) \
  __VA_ARGS__                 \
  inline const std::string name = #__VA_ARGS__;

using u64 = unsigned long long;
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(4) short2 {
  short x, y;
};
inline unsigned bits(float x) { return std::bit_cast<unsigned>(x); }
inline u64 bits(double x) { return std::bit_cast<u64>(x); }
#define NOINLINE [[gnu::noinline]] inline

/// Row i has the elements first[i] to first[i + 1] - 1. An element's `column` is the place of its data.
QUERN_BOTH(
    kData,
    struct Data {
      int rows;
      int first[260];
      int column[8192];  // below 512
      int sorted[8192];  // the same, ascending in each row
      unsigned x[512];
      float f[512];
      double r[512];
      short s[512];
      signed char c[512];
      long long w[512];
      float2 f2[512];
      float4 f4[512];
      short2 s2[512];
      int next[512];    // acyclic; -1: the end
      char text[2048];  // strings with their zeros
    };
    inline u64 mix(u64 h, u64 v) { return ((h ^ v) + (h >> 29) + 1) * 0x9e3779b97f4a7c15ull; })

/// Compiled for the device in front of all texts.
std::string prologue();

/// The value of a row, a function's body: `t` is threadIdx.x, `b` and `n` are the row's first element and the
/// next row's.
struct Loop {
  const char* name;
  const char* text;
  u64 (*host)(const Data& g, int i, int t, int b, int n);
};
#define QUERN_LOOP(name, ...) \
  Loop { name, #__VA_ARGS__, [](const Data& g, int i, int t, int b, int n) -> u64 __VA_ARGS__ }

/// The text of `loop` as `f(g, i, t)`, with `attributes`.
std::string function_of(const Loop& loop, const std::string& attributes = "__forceinline__",
                        const std::string& name = "f");
inline u64 value_of(const Loop& loop, const Data& g, int i, int t) {
  return loop.host(g, i, t, g.first[i], g.first[i + 1]);
}

enum class Shape : std::uint8_t {
  various,  ///< 0 to 7 elements, some rows 100 and more
  equal,    ///< 9 elements each
  empty,    ///< no row has an element
  single,   ///< one row of many has elements
  alone     ///< there is only one row
};
inline constexpr Shape kShapes[] = {Shape::various, Shape::equal, Shape::empty, Shape::single, Shape::alone};
inline constexpr const char* kShapeNames[] = {"various", "equal", "empty", "single", "alone"};
Data data_of(Shape shape);

std::vector<std::uint32_t> words_of(const Data& data);

/// Data in the device's memory.
class OnDevice {
 public:
  explicit OnDevice(const Data& data);
  /// Runs `kernel(const Data*, u64* out)` and returns `out`, which was zero.
  std::vector<u64> run(const Kernel& kernel, Dim3 grid, Dim3 block, std::size_t count) const;

 private:
  DeviceArray<std::uint32_t> words_;
};

/// Loads CUDA C++ behind prologue().
Module load(const std::string& source);

}  // namespace quern::cuda_test::rows
