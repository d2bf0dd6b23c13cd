// SPDX-License-Identifier: Apache-2.0
// The CPU device without a driver: compiled kernels run on this thread, in memory allocated for them. Tests
// can choose everything that the driver chooses by itself (instruction set, optimisation level, gangs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpu/compiler/compiler.hpp"
#include "generate.hpp"
#include "ptx/module.hpp"

namespace quern::oracle {

/// A process may have one at a time (it reserves about 90 GiB of addresses, but no memory).
class BareDevice {
 public:
  BareDevice();
  ~BareDevice();
  BareDevice(const BareDevice&) = delete;
  BareDevice& operator=(const BareDevice&) = delete;

  /// Allocates the module's variables and discards all other memory.
  void load(const ptx::Module& module);
  std::byte* allocate(std::size_t bytes);

  /// Runs the grid. Returns false if a trap ended it.
  bool launch(const cpu::KernelCode& code, const cpu::Specialisation& specialisation, const Extents& grid,
              const std::vector<std::byte>& params, std::uint64_t local_bytes);

 private:
  std::byte* reservation_ = nullptr;
  std::byte* window_ = nullptr;
  std::byte* shared_ = nullptr;
  std::byte* local_ = nullptr;
  std::size_t used_ = 0;
  std::map<std::string, std::byte*> variables_;
  std::unique_ptr<std::byte, void (*)(void*)> frames_;
  std::size_t frame_bytes_ = 0;
};

/// The specialisations with which to test a kernel: several for each seed, with different instruction sets,
/// optimisation levels and gangs. In some, the dispatcher runs the lanes.
std::vector<cpu::Specialisation> configurations(std::uint64_t seed, const Extents& block, unsigned count,
                                                unsigned dispatched_percent);
std::string name_of(const cpu::Specialisation& specialisation);

}  // namespace quern::oracle
