// SPDX-License-Identifier: Apache-2.0
// Machine code that all modules, contexts and devices of the process share
// (docs/decisions/0025-shared-machine-code.md).
#pragma once

#include <memory>
#include <string_view>

#include "base/digest.hpp"
#include "cpu/compiler/compiler.hpp"
#include "cpu/device/module/stored.hpp"

namespace quern::cpu::device {

/// Names the one who makes code that is not known.
enum class Maker : std::uint8_t {
  launch,      ///< something waits for it
  background,  ///< quick code of the kernel runs meanwhile; it is not counted again
};

/// The machine code of kernel `kernel` of the PTX whose text has digest `ptx`; calls `make` if neither the
/// process nor the store has it. Threads that ask for the same code at once get that of one of them. Failures
/// are not kept. Where the system refuses a mapping, code that nobody uses is unmapped, and it is tried once
/// more. Quick code is not stored, nor taken from bundles. Thread-safe.
Expected<std::shared_ptr<const KernelCode>> shared_code(const base::Digest& ptx, std::string_view kernel,
                                                        const Specialisation& specialisation,
                                                        const MakeImage& make, Maker maker = Maker::launch);

/// The code that the process, a bundle or the store has; null: it must be made. Does not wait for code that
/// is being made. Thread-safe.
std::shared_ptr<const KernelCode> known_code(const base::Digest& ptx, std::string_view kernel,
                                             const Specialisation& specialisation);

/// Counts of this process; a consistent reading of each, not of all.
struct CodeStats {
  /// kernels for which machine code was generated, once a specialisation, whether quick or good
  std::uint64_t generated = 0;
  std::uint64_t from_memory = 0;  ///< requests answered by code that the process had, or was generating
  std::uint64_t from_disk = 0;
  std::uint64_t from_bundles = 0;
};
CodeStats code_stats();

}  // namespace quern::cpu::device
