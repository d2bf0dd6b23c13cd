// SPDX-License-Identifier: Apache-2.0
// A device with one worker for tests: the window with its gaps, memory in it, and launches of emitted
// kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "cpu/abi/state.hpp"
#include "cpu/compiler/compiler.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::test {

using Extents = std::array<std::uint32_t, 3>;

/// Kernel parameters at their natural offsets, in order.
class Params {
 public:
  template <class T>
  Params& add(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t at = (bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    return *this;
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// A process may have one at a time (it reserves about 90 GiB of addresses, but no memory).
class TestDevice {
 public:
  TestDevice();
  ~TestDevice();
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;

  /// `count` zeroed elements of device memory, which live until clear().
  template <class T>
  std::span<T> allocate(std::size_t count) {
    return {reinterpret_cast<T*>(take(count * sizeof(T))), count};
  }
  void clear() { used_ = 0; }

  /// Runs every block of the grid. Returns the trap that ended it, if there was one.
  std::optional<ir::Trap> launch(const KernelCode& code, const Specialisation& specialisation,
                                 const Extents& grid, const Params& params);

  /// The same, in calls of `chunk` blocks each.
  std::uint64_t chunk = ~std::uint64_t{0};
  std::uint64_t streams = 0;  ///< LaunchState::streams
  std::vector<std::uint64_t> symbols;
  std::uint32_t local_bytes = 0;

 private:
  std::byte* take(std::size_t bytes);

  std::byte* reservation_ = nullptr;
  std::byte* window_ = nullptr;
  std::byte* shared_ = nullptr;
  std::byte* local_ = nullptr;
  std::size_t used_ = 0;
};

/// Compiles a handwritten module. Fails the test with the diagnostics if the module is refused.
std::shared_ptr<const KernelCode> compile_ir(const ir::Module& module, const Specialisation& specialisation);

/// Every instruction set of this processor, with both optimisation levels.
std::vector<Specialisation> variants(const Extents& block);
std::string name(const Specialisation& specialisation);

}  // namespace quern::cpu::test
