// SPDX-License-Identifier: Apache-2.0
// Finds the devices: libcuda's and the CPU device's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/kernel_request.hpp"
#include "driver/loader.hpp"
#include "quern/device.hpp"
#include "quern/expected.hpp"
#include "quern/stage.hpp"
#include "runtime/device/driver.hpp"

namespace quern::session {

/// The device that a name selects. No kind: the first CUDA device, else the CPU device.
struct DeviceChoice {
  std::optional<DeviceKind> kind;
  int ordinal = 0;
  std::string origin;  ///< the source of the name, for messages: "QUERN_DEVICE", "device"
  std::string text;
};

/// "auto", "cpu", "cpu:0", "cuda", "cuda:1"; `text` empty: QUERN_DEVICE, else "auto".
Expected<DeviceChoice> read_device_choice(const std::string& text);

/// The driver with at least one device, initialised. The diagnostics give the reason if there is none.
Expected<std::shared_ptr<const runtime::Driver>> open_cuda_driver();
Expected<std::shared_ptr<const runtime::Driver>> open_cpu_driver();

/// The chosen device; the diagnostics list the attempts and the remedies.
Expected<Device> choose_device(const DeviceChoice& choice);

/// The plug-in alone, for operations without a device (stage text, PTX checks). Stays loaded.
Expected<const QuernCpuPlugin*> open_plugin();

/// The hint for authors of invalid PTX.
inline constexpr const char* kWrongPtxHint = "correct this line; ptxas checks PTX as well";

/// The plug-in's errors about PTX that it does not accept, with positions in the source of the PTX if these
/// are known; empty if it accepts the PTX.
Diagnostics check_ptx(const QuernCpuPlugin& plugin, std::string_view ptx, const abi::KernelSource& source);

/// The plug-in's text of a stage ("simt", "llvm", "asm", "simt=PASS", "llvm=PASS"); `source` as for
/// check_ptx. `times`: not null: gets a row for each pass that ran.
Expected<std::string> plugin_stage(const QuernCpuPlugin& plugin, const std::string& ptx,
                                   const abi::KernelSource& source, const std::string& kernel,
                                   const std::uint32_t (&block)[3], const std::string& stage,
                                   std::vector<PassTime>* times);

}  // namespace quern::session
