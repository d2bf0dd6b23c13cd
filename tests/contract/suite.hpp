// SPDX-License-Identifier: Apache-2.0
// Shared by the contract tests: the device under test, counted driver calls, kernels.
#pragma once

#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/failing_table.hpp"

namespace quern::contract {

/// Opens "cpu" or "cuda". Returns an empty text, or the reason why the device is not available.
std::string open_device(std::string_view name);
const Device& device();
bool is_cpu();

/// The number of driver calls of the whole process.
driver::FailingTable& calls();
std::uint64_t calls_of(std::string_view function);

/// A session for all tests that do not change its state.
const Session& shared();
/// Another session on the same device.
Session second_session();
/// A session with a separate context, whose queue reads the environment now.
struct OwnContext {
  CUcontext handle = nullptr;

  OwnContext();
  ~OwnContext();
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;
};
class OwnSession : private OwnContext, public Session {
 public:
  OwnSession();
};

/// The kernel of that name in suite.cpp's source.
Kernel kernel(std::string_view name);
Kernel kernel(const Session& session, std::string_view name);

/// Queues work that keeps `stream` busy long after the call.
void keep_busy(StreamView stream);

/// A stream of the program that is not ordered with the default stream. It is never destroyed.
StreamView foreign_stream();

/// The flags that the driver made page-locked memory with (cuMemHostGetFlags).
unsigned host_alloc_flags(void* memory);

/// 0, 1, 2, ...
std::vector<float> counting(std::size_t count);
/// A host array of `shape` with the values 0, 1, 2, ... in C order.
NDArray counting_array(const Shape& shape, Order order = Order::c);

/// The message of the quern::Error that `action` throws; empty if it throws none.
std::string message(const std::function<void()>& action);
inline bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Sets an environment variable for a scope.
class Environment {
 public:
  Environment(const char* name, const char* value);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

// The same constants as in the source of the kernels.
struct Point {
  float x, y;
};
struct Particle {
  int kind;
  double position[3];
  Point corners[2];
};

/// Runs in the child process of row F7; returns its exit status.
int run_exit_child(const std::string& device);
/// The file of this program and the device that it uses, for that child.
const std::string& program_path();
void set_program(const std::string& path);

}  // namespace quern::contract
