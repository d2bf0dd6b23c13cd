// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "launch/signature.hpp"
#include "quern/argument.hpp"

namespace quern::launch {

/// The parameter pointers of one launch; they point to the arguments or to values converted from them. Lives
/// on the stack; the heap is used only by kernels with very many or very large parameters.
class PackedArguments {
 public:
  /// Throws Error(usage) if the arguments do not fit the signature: the message shows it, marks the
  /// parameter, and gives advice.
  PackedArguments(const Signature& signature, std::span<const Argument> arguments);
  PackedArguments(const PackedArguments&) = delete;
  PackedArguments& operator=(const PackedArguments&) = delete;

  void** pointers() noexcept { return pointers_; }
  /// True if an argument is memory whose owner this layer knows.
  bool has_memory() const noexcept { return has_memory_; }

 private:
  std::byte* take(std::size_t bytes) noexcept;
  const void* parameter(const Signature& signature, std::size_t index, const Argument& argument);
  const void* convert(const Signature& signature, std::size_t index, const Argument& argument, Dtype target,
                      bool any_sign);
  const void* pack_array(const Signature& signature, std::size_t index, const Argument& argument);

  static constexpr std::size_t kInlinePointers = 48;
  static constexpr std::size_t kInlineScratch = 768;
  std::array<void*, kInlinePointers> inline_pointers_;
  alignas(16) std::array<std::byte, kInlineScratch> inline_scratch_;
  std::unique_ptr<void*[]> more_pointers_;
  std::unique_ptr<std::byte[]> more_scratch_;
  void** pointers_ = nullptr;
  std::byte* scratch_ = nullptr;
  bool has_memory_ = false;
};

}  // namespace quern::launch
