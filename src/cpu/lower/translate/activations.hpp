// SPDX-License-Identifier: Apache-2.0
// Calls without a machine stack. A function that cannot be inlined is translated once, as part of the
// kernel's own graph. A call is a branch to its first block; a return is a switch over the calls. Each lane
// keeps the records of its activations in local memory: where to return, the function's .local variables, and
// the caller's live values, which the callee overwrites. So a thread may wait for others anywhere, and every
// lane runs independently (docs/decisions/0009-called-functions.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "cpu/abi/limits.hpp"
#include "cpu/lower/translate/frames.hpp"

namespace quern::cpu::lower {

/// The memory of a thread for the records of its activations. It begins with a 32-bit number, the end of the
/// last record: only the memory before that must be copied when blocks take turns (engine/resident.cpp).
inline constexpr std::uint32_t kActivationBytes = ir::kCalledStackBytes;
inline constexpr std::uint32_t kActivationHeadBytes = 16;
/// The start of a record: the number of the call (among the calls of the callee) to which the function
/// returns.
inline constexpr std::uint32_t kRecordHeadBytes = 16;

/// A function. It has one set of variables, and a record in local memory for each activation.
struct Region {
  Frame frame;
  ir::BlockId entry = ir::kNone;
  /// end of its local variables in the record; saved values follow
  std::uint32_t local_end = kRecordHeadBytes;
  std::uint32_t record_bytes = 0;
  std::vector<ir::BlockId> returns_to;  ///< by number of the call
};

/// A call: `save` -> `pass` -> the callee's blocks -> `resume` -> `next`. The edges are created at the end,
/// when liveness is known.
struct CallSite {
  Region* caller = nullptr;  ///< null: the kernel, which has one activation and saves nothing
  Region* callee = nullptr;
  std::uint32_t number = 0;
  ir::BlockId save = ir::kNone;
  ir::BlockId pass = ir::kNone;
  ir::BlockId resume = ir::kNone;
  ir::BlockId next = ir::kNone;
  std::uint32_t location = ir::kNone;
  std::vector<Variable> saved;
};

struct Regions {
  Variable record = 0;  ///< the start of the running activation's record in local memory
  std::map<std::uint32_t, std::unique_ptr<Region>> by_function;
  std::vector<Region*> order;  ///< regions in the order of their first calls
  std::vector<CallSite> sites;
  std::uint32_t kernel_bytes = 0;  ///< bytes of the kernel's local memory; the first record follows
};

class Activations {
 public:
  /// `translate_body` translates the body of the current frame's function.
  Activations(Operands& translation, ParamArrays& params, Frames& frames,
              std::function<void()> translate_body)
      : t_(translation), params_(params), frames_(frames), translate_body_(std::move(translate_body)) {}

  /// Called at the start of the kernel, which has no record.
  void begin();
  /// Emits a call: the values become the callee's parameters. Returns the values of its results, part by
  /// part.
  std::vector<ir::Value> activate(std::uint32_t callee, const std::vector<ir::Value>& values);
  /// Called after the kernel: translates the functions that it calls, and those that they call; then
  /// determines the values that each call saves.
  void finish();

 private:
  Region& region_of(std::uint32_t function);
  void translate_region(Region& region);
  void find_saved(Region& region);
  void emit_saves(const CallSite& site);
  void emit_return_to(const CallSite& site);
  void emit_return(Region& region);

  Operands& t_;
  ParamArrays& params_;
  Frames& frames_;
  const std::function<void()> translate_body_;
  Regions regions_;
};

}  // namespace quern::cpu::lower
