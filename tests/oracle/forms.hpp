// SPDX-License-Identifier: Apache-2.0
// Kernels for the table forms.def: each instruction with every combination of boundary values (or a sample of
// them). A thread stores its results side by side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quern::oracle {

/// The kinds of results, which decide how they are compared.
enum class Kind : std::uint8_t { bits, f16, bf16, f16x2, bf16x2, f32, f64 };

/// One instruction of the table, with chosen alternatives.
struct FormInstance {
  std::string text;  ///< "szext.wrap.u32"
  Kind kind = Kind::bits;
};

/// Instances with operands of the same classes, as one kernel "k" (const u64* in, u64* out): thread i reads
/// `sources` words at i * sources and writes one word for each instance.
struct FormKernel {
  std::string target;  ///< "sm_89"
  std::string ptx;
  unsigned sources = 0;
  std::vector<FormInstance> instances;
  std::vector<std::uint64_t> input;
  unsigned threads = 0;  ///< a multiple of 32
};

/// Returns all rows of forms.def; with `only`, the instructions whose text contains it.
std::vector<FormKernel> form_kernels(const std::string& only = {});

/// True if the device's word is an acceptable result, given that of the oracle.
bool same_result(Kind kind, std::uint64_t expected, std::uint64_t got);
/// Returns the word; NaNs whose bits PTX leaves open are replaced by one NaN.
std::uint64_t canonical_result(Kind kind, std::uint64_t word);

}  // namespace quern::oracle
