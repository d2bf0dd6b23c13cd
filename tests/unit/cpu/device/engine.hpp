// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cpu/engine/memory.hpp"
#include "cpu/engine/output.hpp"
#include "cpu/engine/scheduler.hpp"
#include "cpu/engine/window.hpp"

namespace quern::cpu::test {

/// A scheduler with two workers; never destroyed, like the real one.
struct Engine {
  std::unique_ptr<engine::Window> window;
  std::unique_ptr<engine::Memory> memory;
  engine::Output output;
  std::unique_ptr<engine::Scheduler> scheduler;
  std::shared_ptr<engine::Domain> domain;

  /// The one that most tests share.
  static Engine& get() {
    static Engine& engine = make();
    engine::install_fault_handlers();  // doctest installs its own handlers for every test case
    return engine;
  }
  /// One that has not started any thread yet.
  static Engine& make() { return *new Engine; }

 private:
  Engine() {
    engine::WindowLayout layout;
    layout.arena_bytes = std::uint64_t{1} << 30;
    layout.host_bytes = std::uint64_t{1} << 30;
    layout.worker_count = 2;
    window = std::move(*engine::Window::reserve(layout));
    memory = std::make_unique<engine::Memory>(*window, 1, std::uint64_t{1} << 28, std::uint64_t{1} << 28);
    std::vector<std::unique_ptr<engine::Worker>> workers;
    for (std::uint32_t i = 0; i < 2; ++i)
      workers.push_back(std::move(*engine::Worker::make(i, {window.get(), memory.get(), &output})));
    scheduler = std::make_unique<engine::Scheduler>(std::move(workers));
    domain = scheduler->make_domain();
  }
};

}  // namespace quern::cpu::test
