// SPDX-License-Identifier: Apache-2.0
// cuInit, errors and devices.
#include "cpu/device/cuda_api.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/thread_annotations.hpp"
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
  if (context_stack().empty()) return nullptr;
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
  return entry([&] {
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
