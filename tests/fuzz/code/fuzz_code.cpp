// SPDX-License-Identifier: Apache-2.0
// Any bytes as stored machine code and as a stored list of kernels: an error, or something that is the same
// after it is written and read again, and that the loader can map.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cpu/code/image.hpp"
#include "cpu/code/kernel_info.hpp"
#include "cpu/code/load.hpp"

using namespace quern;
using namespace quern::cpu;

namespace {

void check(bool condition) {
  if (!condition) std::abort();
}

void try_image(std::string_view bytes) {
  const Expected<CodeImage> image = read_image(bytes);
  if (!image) return;
  const std::string written = write_image(*image);
  const Expected<CodeImage> again = read_image(written);
  check(again.has_value() && write_image(*again) == written);
  const cpu::Helper helpers[] = {{"memcpy", nullptr}, {"quern_cpu_trap", nullptr}};
  const Expected<LoadedImage> loaded = map_code(image->code, helpers);
  if (!loaded) return;  // it names other helpers
  check(loaded->text_begin <= loaded->entry && loaded->entry < loaded->text_end);
}

void try_kernels(std::string_view bytes) {
  const Expected<std::vector<KernelInfo>> kernels = read_kernels(bytes);
  if (!kernels) return;
  const Expected<std::vector<KernelInfo>> again = read_kernels(write_kernels(*kernels));
  check(again.has_value() && write_kernels(*again) == write_kernels(*kernels));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_image(bytes);
  try_kernels(bytes);
  return 0;
}
