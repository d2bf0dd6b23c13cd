// SPDX-License-Identifier: Apache-2.0
// Emits one operation for 32 lanes, runs it, and returns the result of each lane. It replaces control flow by
// straight-line code whose operands are read from arrays.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/abi/state.hpp"
#include "cpu/analysis/analysis.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::emit::testing {

/// The bits of a value in each lane, zero-extended.
using Lanes = std::array<std::uint64_t, 32>;

struct Input {
  ir::Type type = ir::Type::i32;
  analysis::LanePattern pattern{.kind = analysis::LanePatternKind::varying};
};

/// One operation and the patterns of its operands and result.
struct Operation {
  ir::Op op;
  ir::Type type = ir::Type::i32;
  ir::Attributes attr{};
  std::uint64_t imm = 0;
  std::vector<Input> inputs{};
  analysis::LanePattern result{.kind = analysis::LanePatternKind::varying};
  /// Selects a version if several have the same operand types; the number of elements of the result.
  unsigned elements = 1;
  std::vector<ir::Symbol> symbols{};
  std::vector<ir::Parameter> params{};
};

/// Returns 0 if only a fraction of the tests runs (QUERN_TEST_FRACTION): LLVM's optimisation takes most of
/// the time, and the emitters are tested without it, too.
std::uint8_t usual_level();

struct Machine {
  Isa isa = Isa::avx2;
  bool full = true;  ///< emit the version in which all lanes run
  std::array<std::uint32_t, 3> block{32, 1, 1};
  std::uint8_t opt_level = usual_level();
  bool alone = false;
  bool compact = false;
};

/// The data that the emitted function reads in addition to its operands.
struct Surroundings {
  engine::LaunchState launch{};
  engine::WorkerState worker{};
  std::uint32_t ctaid[3]{};
  std::uint32_t warp = 0;
};

class Compiled {
 public:
  /// `mask`: the running lanes (all 32 bits are set if compiled for full). Lanes of `out` that do not run are
  /// unspecified.
  std::vector<Lanes> run(const std::vector<Lanes>& inputs, std::uint32_t mask = 0xffffffffu,
                         const Surroundings& around = {}) const;

  std::shared_ptr<void> code;
  void* entry = nullptr;
  std::vector<ir::Type> input_types;
  std::vector<ir::Type> output_types;
};

Compiled compile(const Operation& operation, const Machine& machine);
/// The assembly, for debugging.
std::string assembly(const Operation& operation, const Machine& machine);

/// `value` in every lane.
Lanes filled(std::uint64_t value);

/// The instruction sets of this processor; if only a part of the tests runs, the least and the widest one.
std::vector<Isa> isas();
const char* name_of(Isa isa);

analysis::LanePattern uniform();
analysis::LanePattern uniform_constant(std::uint64_t value);
analysis::LanePattern affine(const analysis::LaneOffsets& pattern);

/// Values for each operand; every combination of up to three operands is tested.
std::vector<std::uint64_t> interesting(ir::Type type);

using Reference = std::function<std::uint64_t(const std::vector<std::uint64_t>&)>;
/// Compares with `expected` for every combination of `values` (interesting() if empty), for vectors on every
/// instruction set and for scalars, with and without a mask. `same` compares the bits of a result; null: they
/// must be equal.
void check_elementwise(const Operation& operation, const Reference& expected,
                       std::vector<std::vector<std::uint64_t>> values = {},
                       const std::function<bool(std::uint64_t, std::uint64_t)>& same = nullptr);

/// True if both are NaN or have the same bits.
bool same_f32(std::uint64_t a, std::uint64_t b);
bool same_f64(std::uint64_t a, std::uint64_t b);
bool same_f16(std::uint64_t a, std::uint64_t b);
bool same_bf16(std::uint64_t a, std::uint64_t b);

float f32(std::uint64_t bits);
double f64(std::uint64_t bits);
std::uint64_t bits_of(float value);
std::uint64_t bits_of(double value);

}  // namespace quern::cpu::emit::testing
