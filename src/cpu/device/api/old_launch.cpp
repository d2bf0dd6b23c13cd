// SPDX-License-Identifier: Apache-2.0
// Launches as before CUDA 4: deprecated functions set the launch of a function bit by bit.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/device/driver.hpp"
#include "cpu/device/launch.hpp"
#include "cpu/device/library.hpp"
#include "cpu/device/limits.hpp"

using namespace quern::cpu::device;

namespace {

constexpr std::size_t kMostParameterBytes = 4096;

/// Calls `change` with the function and its launch.
template <class Change>
CUresult change_launch(CUfunction function, const Change& change) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    const auto object = find_function(driver, function);
    object->old_launch.change([&](OldLaunch& state) { change(*object, state); });
  });
}

CUresult set_parameter(CUfunction function, int offset, const void* value, std::size_t bytes) {
  return change_launch(function, [&](const FunctionObject&, OldLaunch& state) {
    require(value != nullptr && offset >= 0);
    const std::size_t end = static_cast<std::size_t>(offset) + bytes;
    require(end <= kMostParameterBytes);
    if (state.parameters.size() < end) state.parameters.resize(end);
    std::memcpy(state.parameters.data() + offset, value, bytes);
  });
}

CUresult launch_grid(CUfunction function, int width, int height, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    require(width > 0 && height > 0);
    const auto object = find_function(driver, function, its_stream.context);
    LaunchRequest request{{static_cast<unsigned>(width), static_cast<unsigned>(height), 1}};
    OldLaunch state = object->old_launch.get();
    std::copy_n(state.block, 3, request.block);
    request.dynamic_shared_bytes = state.shared_bytes;
    std::size_t bytes = state.parameters.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, state.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    request.extra = extra;
    request.stream = stream;
    launch(driver, function, request);
  });
}

}  // namespace

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  return change_launch(function, [&](const FunctionObject& object, OldLaunch& state) {
    const int extents[] = {x, y, z};
    std::uint64_t threads = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      require(extents[d] > 0 && static_cast<std::uint32_t>(extents[d]) <= kMaxBlock[d]);
      threads *= static_cast<std::uint64_t>(extents[d]);
    }
    require(threads <= object.info().max_threads);
    for (std::size_t d = 0; d < 3; ++d) state.block[d] = static_cast<std::uint32_t>(extents[d]);
  });
}

CUresult cuFuncSetSharedSize(CUfunction function, unsigned bytes) {
  return change_launch(function, [&](const FunctionObject& object, OldLaunch& state) {
    require(bytes <= object.settings.max_dynamic_shared_bytes.load());
    state.shared_bytes = bytes;
  });
}

CUresult cuParamSetSize(CUfunction function, unsigned bytes) {
  return change_launch(function, [&](const FunctionObject&, OldLaunch& state) {
    require(bytes <= kMostParameterBytes);
    state.parameters.resize(bytes);
  });
}

CUresult cuParamSeti(CUfunction function, int offset, unsigned value) {
  return set_parameter(function, offset, &value, sizeof value);
}

CUresult cuParamSetf(CUfunction function, int offset, float value) {
  return set_parameter(function, offset, &value, sizeof value);
}

CUresult cuParamSetv(CUfunction function, int offset, void* value, unsigned bytes) {
  return set_parameter(function, offset, value, bytes);
}

CUresult cuLaunch(CUfunction function) { return launch_grid(function, 1, 1, nullptr); }

CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  return launch_grid(function, width, height, nullptr);
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  return launch_grid(function, width, height, stream);
}
