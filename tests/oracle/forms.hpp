// SPDX-License-Identifier: Apache-2.0
// The table forms.def as kernels: each instruction on every combination of boundary values (or a sample of
// them), the results of a thread side by side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quern::oracle {

/// The way in which results are compared.
enum class Kind : std::uint8_t { bits, f16, bf16, f16x2, bf16x2, f32, f64 };

/// One instruction of the table, its alternatives chosen.
struct FormInstance {
  std::string text;  ///< "szext.wrap.u32"
  Kind kind = Kind::bits;
};

/// Instances whose operands are of the same classes, as one kernel "k" (const u64* in, u64* out): thread i
/// reads `sources` words at i * sources and writes one word for each instance.
struct FormKernel {
  std::string target;  ///< "sm_89"
  std::string ptx;
  unsigned sources = 0;
  std::vector<FormInstance> instances;
  std::vector<std::uint64_t> input;
  unsigned threads = 0;  ///< a multiple of 32
};

/// All of forms.def; `only`: instructions whose text contains it.
std::vector<FormKernel> form_kernels(const std::string& only = {});

/// True if the device's word is an acceptable result for the oracle's.
bool same_result(Kind kind, std::uint64_t expected, std::uint64_t got);
/// The word with every NaN that may be any the same one.
std::uint64_t canonical_result(Kind kind, std::uint64_t word);

}  // namespace quern::oracle
