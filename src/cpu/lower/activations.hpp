// SPDX-License-Identifier: Apache-2.0
// Functions that are called rather than inlined, as parts of the kernel's own graph (activations.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "cpu/abi/limits.hpp"
#include "cpu/lower/frame.hpp"

namespace quern::cpu::lower {

/// The memory of a thread for the records of its activations. It begins with a 32-bit number, the end of the
/// last record, so that no more needs to be copied when blocks take turns (engine/resident.cpp).
inline constexpr std::uint32_t kActivationBytes = ir::kCalledStackBytes;
inline constexpr std::uint32_t kActivationHeadBytes = 16;
/// At the start of a record: to which call the function returns (its number among the callee's calls).
inline constexpr std::uint32_t kRecordHeadBytes = 16;

/// One function. Its variables are there once; its record in local memory once for each activation.
struct Region {
  Frame frame;
  ir::BlockId entry = ir::kNone;
  std::uint32_t local_end =
      kRecordHeadBytes;  ///< of its local variables in the record; behind: what is saved
  std::uint32_t record_bytes = 0;
  std::vector<ir::BlockId> returns_to;  ///< by the number of the call
};

/// One call: `save` -> `pass` -> the callee's blocks -> `resume` -> `next`. The edges are made at the end,
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
  std::vector<Region*> order;  ///< as calls of them were met
  std::vector<CallSite> sites;
  std::uint32_t kernel_bytes = 0;  ///< of local memory; the first record lies behind
};

}  // namespace quern::cpu::lower
