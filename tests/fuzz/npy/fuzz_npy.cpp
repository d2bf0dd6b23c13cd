// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .npy file: an array or an error; an array is unchanged after it is written and read again.
#include <sys/mman.h>
#include <unistd.h>
#include <quern/error.hpp>
#include <quern/ndarray.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace quern;

namespace {

/// A file in memory: the reader takes files only.
class MemoryFile {
 public:
  MemoryFile()
      : descriptor_(memfd_create("fuzz.npy", 0)), path_("/proc/self/fd/" + std::to_string(descriptor_)) {
    if (descriptor_ < 0) std::abort();
  }
  ~MemoryFile() { close(descriptor_); }
  const std::string& write(const std::uint8_t* data, std::size_t size) {
    if (ftruncate(descriptor_, 0) != 0 || pwrite(descriptor_, data, size, 0) != static_cast<ssize_t>(size))
      std::abort();
    return path_;
  }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  static const std::string written = "/tmp/fuzz-npy-" + std::to_string(getpid()) + ".npy";
  const std::string& path = file.write(data, size);
  try {
    const NDArray array = NDArray::load_npy(path);
    array.save_npy(written);
    const NDArray again = NDArray::load_npy(written);
    if (again.identical(array) && again.element() == array.element()) return 0;
    std::fprintf(stderr, "reading back changed the array; see %s\n", written.c_str());
    std::abort();
  } catch (const Error& error) {
    if (std::string_view(error.what()).find(path) != std::string_view::npos) return 0;
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
}
