// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the contract's rows: the device under test, counted driver calls, kernels.
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

/// Opens "cpu" or "cuda". Empty: done; else why it is not there.
std::string open_device(std::string_view name);
const Device& device();
bool is_cpu();

/// The driver calls of everything in this process.
driver::FailingTable& calls();
std::uint64_t calls_of(std::string_view function);

/// One session for all tests that leave it as it is.
const Session& shared();
/// Another session on the same device.
Session second_session();
/// A session with a context of its own, whose queue reads the environment now.
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

/// Work that keeps `stream` busy for long after the call.
void keep_busy(StreamView stream);

/// A stream of the program's own that the default stream is not ordered with. It is never destroyed.
StreamView foreign_stream();

/// The flags that the driver made page-locked memory with (cuMemHostGetFlags).
unsigned host_alloc_flags(void* memory);

/// 0, 1, 2, ...
std::vector<float> counting(std::size_t count);
/// A host array of `shape` that counts in C order.
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

// As in the kernels' source.
struct Point {
  float x, y;
};
struct Particle {
  int kind;
  double position[3];
  Point corners[2];
};

/// Runs in row F7's child process; returns its exit status.
int run_exit_child(const std::string& device);
/// This program's file and the device it runs on, for that child.
const std::string& program_path();
void set_program(const std::string& path);

}  // namespace quern::contract
