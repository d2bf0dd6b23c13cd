// SPDX-License-Identifier: Apache-2.0
// The arrays of a row in host memory, and the comparison of two such sets.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "row.hpp"

namespace quern::bench {

/// Memory that begins at a large page and consists of such, where the system has them: what the device's own
/// memory does.
class HostArray {
 public:
  explicit HostArray(std::size_t bytes);
  std::byte* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return bytes_; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, Unmap> mapping_;
  std::byte* data_;
  std::size_t bytes_;
};

/// The arrays of a row with their first values. Thread-compatible.
class HostData {
 public:
  explicit HostData(const Row& row);

  /// Runs a native function on these arrays: `pieces` of its work, in equal parts by that many threads.
  void run(Native native, std::size_t pieces, std::size_t thread_count) const;
  /// Gives the arrays that are states their first values again.
  void restore() const;
  const std::vector<void*>& pointers() const noexcept { return pointers_; }
  /// A sentence on the first difference that the row does not tolerate; empty if there is none.
  std::string difference(const HostData& expected) const;

  struct State {
    std::size_t array;
    std::vector<std::byte> first;
  };
  const std::vector<State>& states() const noexcept { return states_; }
  const std::vector<HostArray>& arrays() const noexcept { return arrays_; }

 private:
  const Row& row_;
  std::vector<HostArray> arrays_;
  std::vector<void*> pointers_;
  std::vector<State> states_;
};

}  // namespace quern::bench
