// SPDX-License-Identifier: Apache-2.0
// Runs a program, each thread separately, one instruction at a time. Threads synchronise only at barriers and
// at warp operations. All started threads get turns, so a thread may wait in a loop for another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "program.hpp"

namespace quern::oracle {

struct Launch {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint64_t max_steps = std::uint64_t{1} << 32;  ///< instructions of all threads together
  /// true: all blocks run at the same time; false: one after another
  bool all_blocks_at_once = false;
};

enum class Outcome : std::uint8_t { ok, illegal_address, misaligned, trap, deadlock, too_long };

struct Result {
  Outcome outcome = Outcome::ok;
  std::string message;  ///< for a fault: the instruction and the thread
};

/// Generic addresses of the two windows; all addresses below them are global.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 46;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{1} << 45;

class Block;

class Machine {
 public:
  /// Allocates the module's variables. Throws Unsupported.
  explicit Machine(Program program);

  /// Allocates a zeroed buffer in global memory. Its address is aligned to 256 bytes, with unmapped space
  /// around it.
  std::uint64_t allocate(std::size_t size_bytes);
  /// The bytes of the buffer or variable that begins at `address`.
  std::span<std::byte> memory(std::uint64_t address);

  /// `params`: the parameter buffer, laid out as the kernel declares it. Throws Unsupported for an
  /// instruction that the oracle does not know.
  Result launch(const std::string& kernel, const Launch& launch, std::span<const std::byte> params);

  const Program& program() const { return program_; }

 private:
  friend class Block;
  static Result run(const std::vector<std::unique_ptr<Block>>& blocks, const Launch& launch,
                    const std::uint64_t& steps);
  std::byte* translate(std::uint64_t address, std::size_t size);

  Program program_;
  std::map<std::uint64_t, std::vector<std::byte>> buffers_;  ///< by address
  std::map<std::string, std::uint64_t> symbols_;             ///< global and constant variables
  std::uint64_t next_address_ = 0x10000;
};

}  // namespace quern::oracle
