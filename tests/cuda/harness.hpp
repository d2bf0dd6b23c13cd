// SPDX-License-Identifier: Apache-2.0
// Compares expressions of CUDA C++ on the CPU device with plain host code.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <quern/quern.hpp>
#include <string>
#include <vector>

namespace quern::cuda_test {

using Bits = std::uint64_t;

/// False, with a message, if there is no CPU device or no NVRTC.
bool ready();
Session& session();

template <class To, class From>
To as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline float f32(Bits bits) { return as<float>(static_cast<std::uint32_t>(bits)); }
inline double f64(Bits bits) { return as<double>(bits); }
inline Bits bits_of(float value) { return as<std::uint32_t>(value); }
inline Bits bits_of(double value) { return as<std::uint64_t>(value); }

/// The allowed difference of a result.
struct Bound {
  enum class Kind : std::uint8_t {
    exact,
    f32,
    f64,
    f16,
    bf16
  } kind = Kind::exact;  ///< floats: any two NaNs are equal
  double ulp = 0;        ///< of the expected result
  double absolute = 0;   ///< an absolute bound, used if it is larger
};
inline Bound exact() { return {}; }
inline Bound single(double ulp = 0, double absolute = 0) { return {Bound::Kind::f32, ulp, absolute}; }
inline Bound real(double ulp = 0, double absolute = 0) { return {Bound::Kind::f64, ulp, absolute}; }

/// An expression over a, b and c, and its expected value, computed from the bits of a, b and c. For bounds
/// other than exact, the reference returns bits of its kind; with `ulp` it returns the bits of a double for
/// f32, too.
struct Row {
  std::string device;
  std::function<Bits(Bits, Bits, Bits)> host;
  Bound bound{};
};

struct Table {
  std::string includes;
  std::string type;  ///< type of a, b and c: their bits are interpreted in it
  std::vector<Bits> values;
  std::vector<Row> rows;
  std::string prologue{};  ///< declarations before the kernel
  std::vector<std::string> options{};
};

/// Runs each row on a sample of the combinations of `values`, and CHECKs each result.
void check(const Table& table);

/// Values for which integer code is often wrong.
std::vector<Bits> interesting_words();
std::vector<Bits> interesting_longs();
std::vector<Bits> interesting_floats();
std::vector<Bits> interesting_doubles();

/// Spreads the bits of a number; kernels have the same function from kMixedSource.
std::uint32_t mixed(std::uint32_t i);
inline constexpr const char* kMixedSource =
    "__device__ unsigned mixed(unsigned i) { i *= 0x9e3779b9u; i ^= i >> 15; return i * 0x85ebca6bu; }\n";

/// Runs kernel `name` of `source` with one block of `threads` threads (or `blocks` of them) on an array of
/// 32-bit words and returns the array.
std::vector<std::uint32_t> run(const std::string& source, const std::string& name,
                               std::vector<std::uint32_t> words, unsigned threads, unsigned blocks = 1,
                               unsigned shared_bytes = 0);

}  // namespace quern::cuda_test
