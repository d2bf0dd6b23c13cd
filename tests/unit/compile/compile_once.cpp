// SPDX-License-Identifier: Apache-2.0
// A process that compiles one file and reports how, for tests and measurements of the disk tier.
//
//   compile-once FILE [NVRTC-OPTION...]
//
// Prints `runs=N disk=N loaded=0|1 us=TIME again_us=TIME errors=N ptx=SHA256`, followed by the errors.
// `loaded`: the process has loaded a libnvrtc. `us`: the time from the creation of the compiler to the PTX.
// `again_us`: the time of another request for the same, the least of a hundred.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <span>

#include "base/digest.hpp"
#include "base/file.hpp"
#include "compile/compiler.hpp"

int main(int argc, char** argv) {
  using namespace quern;
  if (argc < 2) return 2;
  abi::KernelRequest request;
  request.source.file_name = argv[1];
  request.source.text = base::read_file(argv[1]).value();
  request.options.assign(argv + 2, argv + argc);
  const auto begin = std::chrono::steady_clock::now();
  compile::Compiler compiler;
  const auto image = compiler.compile(request);
  const auto end = std::chrono::steady_clock::now();
  const CompileStats stats = compiler.stats();
  double again_us = 0;
  for (int i = 0; i < 100 && image; ++i) {
    const auto again = std::chrono::steady_clock::now();
    static_cast<void>(compiler.compile(request));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - again;
    again_us = i == 0 ? took.count() : std::min(again_us, took.count());
  }
  std::ifstream maps("/proc/self/maps");
  const std::string mapped{std::istreambuf_iterator<char>(maps), {}};
  const std::string ptx = image ? (*image)->ptx : "";
  std::fputs(fmt::format("runs={} disk={} loaded={:d} us={} again_us={:.1f} errors={} ptx={}\n{}",
                         stats.nvrtc_runs, stats.disk_hits, mapped.find("libnvrtc") != std::string::npos,
                         std::chrono::duration_cast<std::chrono::microseconds>(end - begin).count(), again_us,
                         image ? 0 : image.errors().size(), base::sha256(std::as_bytes(std::span(ptx))).hex(),
                         image ? "" : to_string(image.errors()))
                 .c_str(),
             stdout);
}
