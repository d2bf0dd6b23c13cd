// SPDX-License-Identifier: Apache-2.0
// cuInit, errors and devices.
#include "cpu/device/cuda_api.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/thread_annotations.hpp"
#include "cpu/abi/warp_size.hpp"
#include "cpu/device/atomic_capabilities.hpp"
#include "cpu/device/driver.hpp"
#include "cpu/device/limits.hpp"

using namespace quern::cpu::device;
namespace base = quern::base;
namespace engine = quern::cpu::engine;

namespace {

struct ResultText {
  CUresult result;
  const char* name;
  const char* text;
};
constexpr ResultText kResults[] = {
#define QUERN_CUDA_RESULT(name, text) {name, #name, text},
#include "cpu/device/results.def"
};

const ResultText* find_result(CUresult result) noexcept {
  const auto* found = std::find_if(std::begin(kResults), std::end(kResults),
                                   [&](const ResultText& row) { return row.result == result; });
  return found == std::end(kResults) ? nullptr : found;
}

int attribute_value(CUdevice_attribute attribute, int ordinal, int workers) {
  constexpr int clock_rate_khz =
      1'000'000;  // %clock counts the time stamp counter; what that runs at, nobody says portably
  const long cache = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  const int l2_bytes = cache > 0 ? static_cast<int>(cache) : 0;
  switch (attribute) {
#define QUERN_DEVICE_ATTRIBUTE(name, value) \
  case CU_DEVICE_ATTRIBUTE_##name:          \
    return static_cast<int>(value);
#include "cpu/device/attributes.def"
    default:
      return 0;
  }
}

struct PciAddress {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;
  bool operator==(const PciAddress&) const = default;
};

/// Reads the three forms that cuda.h gives at cuDeviceGetByPCIBusId, in hexadecimal digits.
std::optional<PciAddress> read_pci_address(const char* text) {
  PciAddress read;
  int end = 0;  // stays 0 unless the whole form was read
  const auto whole = [&] { return end != 0 && text[end] == '\0'; };
  std::sscanf(text, "%4x:%2x:%2x.%1x%n", &read.domain, &read.bus, &read.device, &read.function, &end);
  if (whole()) return read;
  read = {};
  end = 0;
  std::sscanf(text, "%4x:%2x:%2x%n", &read.domain, &read.bus, &read.device, &end);
  if (whole()) return read;
  read = {};
  end = 0;
  std::sscanf(text, "%2x:%2x.%1x%n", &read.bus, &read.device, &read.function, &end);
  return whole() ? std::optional(read) : std::nullopt;
}

template <class T>
CUresult lookup(CUresult error, const char** out, T ResultText::* column) noexcept {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ResultText* row = find_result(error);
  *out = row == nullptr ? nullptr : row->*column;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/// Texts are kept, once each: a client may hold the pointer for as long as it likes.
const char* kept(std::string text) {
  static base::Mutex mutex;
  static auto* const texts = new std::set<std::string>;
  const base::LockGuard lock(mutex);
  return texts->insert(std::move(text)).first->c_str();
}

/// Returns the sentence about the fault that ended the current context, with its place; null if `error` is
/// another one. The driver's texts live as long as the process, so these do; there is one for each fault.
const char* text_of_fault(CUresult error, const char* sentence) noexcept try {
  if (forked() || context_stack().empty()) return nullptr;
  const std::shared_ptr<ContextState> context = Driver::get().current_even_failed();
  const engine::FaultKind fault = context->domain->fault();
  if (fault == engine::FaultKind::none || result_of(fault) != error) return nullptr;
  const std::string& place = context->domain->fault_report().text;
  if (place.empty()) return nullptr;
  return kept(sentence + (" " + place));
} catch (...) {  // a Failure too: the current context is destroyed
  return nullptr;
}

struct Reason {
  CUresult result = CUDA_SUCCESS;
  const char* text = "";
};
thread_local Reason last_reason;

/// The sentence with the reason that is known for this thread's last failure; null if there is none.
const char* text_of_reason(CUresult error, const char* sentence) noexcept try {
  if (error != last_reason.result || *last_reason.text == '\0') return nullptr;
  return kept(std::string(sentence) + ": " + last_reason.text);
} catch (...) {  // no memory: the sentence has to do
  return nullptr;
}

}  // namespace

void quern::cpu::device::note_reason(CUresult result, const std::string& reason) noexcept {
  last_reason = {};
  if (reason.empty()) return;
  try {
    last_reason = {result, kept(reason)};
  } catch (...) {  // no memory: the result has to do
  }
}

CUresult cuInit(unsigned flags) { return Driver::initialise(flags); }

CUresult cuDriverGetVersion(int* version) {
  return entry_even_forked([&] {
    require(version != nullptr);
    *version = kDriverVersion;
  });
}

CUresult cuGetErrorName(CUresult error, const char** name) { return lookup(error, name, &ResultText::name); }
CUresult cuGetErrorString(CUresult error, const char** text) {
  const CUresult found = lookup(error, text, &ResultText::text);
  if (found != CUDA_SUCCESS || error == CUDA_SUCCESS) return found;
  const char* more = text_of_reason(error, *text);
  if (more == nullptr) more = text_of_fault(error, *text);
  if (more != nullptr) *text = more;
  return found;
}

CUresult cuDeviceGetCount(int* count) {
  return entry([&] {
    const Driver& driver = Driver::get();
    require(count != nullptr);
    *count = static_cast<int>(driver.device_count());
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return entry([&] {
    const Driver& driver = Driver::get();
    require(device != nullptr);
    *device = static_cast<CUdevice>(driver.device(ordinal));
  });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return entry([&] {
    Driver::get().device(device);
    require(name != nullptr && length > 0);
    const std::size_t count = std::min(engine::kDeviceName.size(), static_cast<std::size_t>(length) - 1);
    std::memcpy(name, engine::kDeviceName.data(), count);
    name[count] = '\0';
  });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return entry([&] {
    const std::uint32_t ordinal = Driver::get().device(device);
    require(uuid != nullptr);
    // The same on every machine and in every run: the name, and the ordinal as the last byte.
    std::memset(uuid->bytes, 0, sizeof uuid->bytes);
    std::memcpy(uuid->bytes, "quern-cpu-devic", 15);
    uuid->bytes[15] = static_cast<char>(ordinal);
  });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

CUresult cuDeviceTotalMem(unsigned* bytes, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    require(bytes != nullptr);
    constexpr std::uint64_t kMost = std::numeric_limits<unsigned>::max();
    *bytes = static_cast<unsigned>(std::min<std::uint64_t>(driver.memory().total_bytes(ordinal), kMost));
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return entry([&] {
    Driver::get().device(device);
    require(major != nullptr && minor != nullptr);
    *major = attribute_value(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0, 0);
    *minor = attribute_value(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0, 0);
  });
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  return entry([&] {
    Driver::get().device(device);
    require(properties != nullptr);
    const auto value = [](CUdevice_attribute attribute) { return attribute_value(attribute, 0, 0); };
    properties->maxThreadsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    for (std::size_t d = 0; d < 3; ++d) {
      properties->maxThreadsDim[d] = static_cast<int>(kMaxBlock[d]);
      properties->maxGridSize[d] = static_cast<int>(kMaxGrid[d]);
    }
    properties->sharedMemPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    properties->totalConstantMemory = value(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    properties->SIMDWidth = value(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    properties->memPitch = value(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    properties->regsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    properties->clockRate = value(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    properties->textureAlign = value(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  });
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  return entry([&] {
    const auto ordinal = static_cast<int>(Driver::get().device(device));
    require(text != nullptr && length > 0);
    const std::string id =
        fmt::format("{:04x}:{:02x}:{:02x}.0", attribute_value(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, ordinal, 0),
                    attribute_value(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, ordinal, 0),
                    attribute_value(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, ordinal, 0));
    require(id.size() < static_cast<std::size_t>(length));
    std::memcpy(text, id.c_str(), id.size() + 1);
  });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  return entry([&] {
    const Driver& driver = Driver::get();
    require(device != nullptr && text != nullptr);
    const std::optional<PciAddress> asked = read_pci_address(text);
    require(asked.has_value());
    for (std::uint32_t ordinal = 0; ordinal < driver.device_count(); ++ordinal) {
      const auto value = [&](CUdevice_attribute attribute) {
        return static_cast<unsigned>(attribute_value(attribute, static_cast<int>(ordinal), 0));
      };
      if (*asked != PciAddress{value(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
                               value(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
                               value(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID), 0})
        continue;
      *device = static_cast<CUdevice>(ordinal);
      return;
    }
    fail(CUDA_ERROR_INVALID_DEVICE);
  });
}

CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType type, CUdevice device) {
  return entry([&] {
    Driver::get().device(device);
    require(supported != nullptr && type >= 0 && type < CU_EXEC_AFFINITY_TYPE_MAX);
    *supported = 0;
  });
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    require(bytes != nullptr);
    *bytes = driver.memory().total_bytes(ordinal);
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    require(value != nullptr && attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX);
    *value = attribute_value(attribute, static_cast<int>(ordinal),
                             static_cast<int>(driver.scheduler().worker_count()));
  });
}

CUresult cuDeviceGetHostAtomicCapabilities(unsigned* capabilities, const CUatomicOperation* operations,
                                           unsigned count, CUdevice device) {
  return entry([&] {
    const Driver& driver = Driver::get();
    driver.device(device);
    require(capabilities != nullptr && operations != nullptr && count > 0);
    for (unsigned i = 0; i < count; ++i)
      capabilities[i] = atomic_capabilities(operations[i], driver.compute_capability());
  });
}

// The device has no profiler that could be started.
CUresult cuProfilerInitialize(const char*, const char*, CUoutput_mode) {
  return entry([] {
    Driver::get().current();
    fail(CUDA_ERROR_NOT_SUPPORTED);  // as every driver since CUDA 11 answers
  });
}

CUresult cuProfilerStart() {
  return entry([] { Driver::get().current(); });
}

CUresult cuProfilerStop() {
  return entry([] { Driver::get().current(); });
}
