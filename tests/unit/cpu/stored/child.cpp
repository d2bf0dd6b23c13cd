// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "cache/bundle_format.hpp"
#include "cache/entry_format.hpp"
#include "driver/cpu_plugin.h"
#include "driver/driver_table.hpp"

namespace quern::test {
namespace {

/// fill: out[t] = 3 t + 7. stray: thread 37 writes to `address`, in line 42 of stray.cu. spin: runs until
/// *out is not 0.
constexpr const char* kText = R"(.version 8.0
.target sm_80
.address_size 64
.file 1 "stray.cu"
.visible .entry fill(.param .u64 out, .param .u64 address) {
  .reg .b32 %r<3>; .reg .b64 %a<4>;
  ld.param.u64 %a0, [out];
  mov.u32 %r0, %tid.x;
  mad.lo.s32 %r1, %r0, 3, 7;
  mul.wide.u32 %a1, %r0, 4;
  add.s64 %a2, %a0, %a1;
  st.global.u32 [%a2], %r1;
  ret;
}
.visible .entry stray(.param .u64 out, .param .u64 address) {
  .reg .b32 %r<3>; .reg .b64 %a<4>; .reg .pred %p;
  .loc 1 40 1
  ld.param.u64 %a0, [out];
  ld.param.u64 %a3, [address];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %a1, %r0, 4;
  add.s64 %a2, %a0, %a1;
  .loc 1 41 1
  setp.eq.u32 %p, %r0, 37;
  selp.b64 %a2, %a3, %a2, %p;
  .loc 1 42 5
  st.global.u32 [%a2], %r0;
  ret;
}
.visible .entry spin(.param .u64 out, .param .u64 address) {
  .reg .b32 %r<3>; .reg .b64 %a<3>; .reg .pred %p;
  ld.param.u64 %a0, [out];
$again:
  ld.volatile.global.u32 %r0, [%a0];
  setp.eq.u32 %p, %r0, 0;
  @%p bra $again;
  ret;
}
)";
constexpr std::uint64_t kStrayAddress = 0x1000;

/// A kernel fill that does the same in enough instructions for quick code.
std::string long_text() {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry fill(.param .u64 out, .param .u64 address) {\n"
      ".reg .b32 %r<3>; .reg .b64 %a<3>;\nld.param.u64 %a0, [out];\nmov.u32 %r0, %tid.x;\n"
      "mov.u32 %r1, 7;\n";
  for (int i = 0; i < 60; ++i) text += i % 20 == 0 ? "add.s32 %r1, %r1, %r0;\n" : "xor.b32 %r1, %r1, 0;\n";
  return text + "mul.wide.u32 %a1, %r0, 4;\nadd.s64 %a2, %a0, %a1;\nst.global.u32 [%a2], %r1;\nret;\n}\n";
}

void print(const char* name, std::uint64_t value) {
  std::printf("%s %llu\n", name, static_cast<unsigned long long>(value));
}

struct Device {
  const QuernCpuPlugin* plugin = nullptr;
  driver::DriverTable cu;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUdeviceptr out = 0;

  bool open(const char* library, const std::string& text) {
    void* const loaded = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) return false;
    const auto ask = reinterpret_cast<const QuernCpuPlugin* (*)()>(::dlsym(loaded, "quern_cpu_device"));
    plugin = ask != nullptr ? ask() : nullptr;
    return plugin != nullptr && plugin->driver_table(&cu, sizeof cu) == 0 && cu.cuInit(0) == CUDA_SUCCESS &&
           cu.cuCtxCreate_v4(&context, nullptr, 0, 0) == CUDA_SUCCESS &&
           cu.cuModuleLoadData(&module, text.c_str()) == CUDA_SUCCESS &&
           cu.cuMemAlloc_v2(&out, 4096) == CUDA_SUCCESS && cu.cuMemsetD8_v2(out, 0, 4096) == CUDA_SUCCESS;
  }
  CUresult launch(const char* name, unsigned block) {
    CUfunction function = nullptr;
    const CUresult found = cu.cuModuleGetFunction(&function, module, name);
    if (found != CUDA_SUCCESS) return found;
    std::uint64_t address = kStrayAddress;
    void* parameters[] = {&out, &address};
    return cu.cuLaunchKernel(function, 1, 1, 1, block, 1, 1, 0, nullptr, parameters, nullptr);
  }
  CUresult finish() { return cu.cuCtxSynchronize(); }
};

void fill(Device& device, unsigned block) {
  device.launch("fill", block);
  print("result", device.finish());
  std::vector<std::uint32_t> got(block);
  device.cu.cuMemcpyDtoH_v2(got.data(), device.out, block * 4);
  bool right = true;
  for (unsigned t = 0; t < block; ++t) right = right && got[t] == 3 * t + 7;
  print("right", right);
}

/// Waits until the store has machine code, ten seconds at most.
void fill_until_stored(Device& device, unsigned block) {
  fill(device, block);
  const std::string suffix = cache::entry_suffix(cache::EntryKind::machine_code);
  const auto is_code = [&](const auto& each) { return each.path().string().ends_with(suffix); };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  bool stored = false;
  while (!stored && std::chrono::steady_clock::now() < end) {
    const std::filesystem::recursive_directory_iterator files(std::getenv("QUERN_CACHE_DIR"));
    stored = std::any_of(begin(files), std::filesystem::recursive_directory_iterator{}, is_code);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  print("stored", stored);
}

void stray(Device& device, unsigned block) {
  device.launch("stray", block);
  print("result", device.finish());
  device.plugin->current_fault(
      [](void*, const QuernCpuFault* fault) {
        print("line", fault->line);
        std::printf("file %s\n", fault->file);
        std::printf("kernel %s\n", fault->kernel);
        print("first_thread", fault->first_thread[0]);
        print("last_thread", fault->last_thread[0]);
        print("address", fault->address);
        print("knows_address", (fault->known & QUERN_CPU_KNOWS_ADDRESS) != 0);
        print("access", fault->access);
      },
      nullptr);
}

void cancel(Device& device, unsigned block) {
  device.launch("spin", block);
  std::thread([&] {
    device.cu.cuCtxSetCurrent(device.context);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    print("cancelled", static_cast<std::uint64_t>(device.plugin->cancel_context()));
  }).join();
  device.finish();
  device.launch("fill", block);  // the context still exists
  print("result", device.finish());
}

void limit(Device& device, unsigned block) {
  device.plugin->set_launch_limit(50'000'000);
  device.launch("spin", block);
  print("result", device.finish());
}

void print_counters(const QuernCpuPlugin& plugin) {
  QuernCpuCodeStatistics counted{};
  counted.struct_bytes = sizeof counted;
  plugin.code_statistics(&counted);
  print("generated", counted.codes_generated);
  print("from_disk", counted.codes_from_disk);
  print("from_memory", counted.codes_from_memory);
  print("texts_checked", counted.texts_checked);
  print("texts_from_disk", counted.texts_from_disk);
  print("from_bundles", counted.codes_from_bundles);
  print("texts_from_bundles", counted.texts_from_bundles);
}

/// Writes a bundle of the text to the file in QUERN_TEST_BUNDLE, for the block and every instruction set. No
/// device is open.
int write_bundle_file(const char* library, unsigned block) {
  void* const loaded = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return 2;
  const QuernCpuPlugin* const plugin =
      reinterpret_cast<const QuernCpuPlugin* (*)()>(::dlsym(loaded, "quern_cpu_device"))();
  const std::uint32_t blocks[][3] = {{block, 1, 1}};
  const QuernCpuBundleRequest request{
      sizeof request, QUERN_CPU_ISA_BASELINE | QUERN_CPU_ISA_AVX2 | QUERN_CPU_ISA_AVX512,
      kText,          std::strlen(kText),
      blocks,         1};
  std::vector<cache::BundleEntry> entries;
  const int failed = plugin->bundle_code(
      &request,
      [](void* user, const QuernCpuEntry* from) {
        cache::BundleEntry entry;
        entry.kind = static_cast<cache::EntryKind>(from->kind);
        std::memcpy(entry.key.bytes.data(), from->key, entry.key.bytes.size());
        entry.content.assign(static_cast<const char*>(from->content), from->content_bytes);
        static_cast<std::vector<cache::BundleEntry>*>(user)->push_back(std::move(entry));
      },
      [](void*, const char* name, std::size_t size) {
        std::printf("without_code %.*s\n", static_cast<int>(size), name);
      },
      [](void*, const char*, const char*, std::uint32_t, std::uint32_t, const char* message, const char*,
         const char*) { std::printf("error %s\n", message); },
      &entries);
  print("entries", entries.size());
  std::ofstream(std::getenv("QUERN_TEST_BUNDLE"), std::ios::binary) << *cache::write_bundle(entries, nullptr);
  return failed;
}

}  // namespace

int run_child(const char* library, const char* scenario, unsigned block) {
  const std::map<std::string, void (*)(Device&, unsigned)> scenarios = {
      {"fill", fill},   {"stray", stray}, {"cancel", cancel},
      {"limit", limit}, {"long", fill},   {"long-until-stored", fill_until_stored}};
  if (std::string(scenario) == "bundle") return write_bundle_file(library, block);
  Device device;
  const auto wanted = scenarios.find(scenario);
  const bool is_long = std::string(scenario).starts_with("long");
  if (wanted == scenarios.end() || !device.open(library, is_long ? long_text() : kText)) return 2;
  wanted->second(device, block);
  std::printf("isa %s\n", device.plugin->isa());
  print_counters(*device.plugin);
  return 0;
}

}  // namespace quern::test
