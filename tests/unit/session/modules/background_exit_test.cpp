// SPDX-License-Identifier: Apache-2.0
// main() returns while modules are loading and kernels are being prepared in the background; some handles are
// static. The test passes if the process ends with status 0.
#include <quern/quern.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

std::vector<quern::PendingModule> loads;
std::vector<quern::Preparation> preparations;

std::string source(int i) {
  return "extern \"C\" __global__ void k(float* x) { for (int i = 0; i < " + std::to_string(i + 2) +
         "; ++i) x[threadIdx.x + i * 32] = sinf(x[i]) * cosf(x[threadIdx.x]); }";
}

}  // namespace

/// The argument says how long to wait before the end, in milliseconds.
int main(int count, char** arguments) {
  try {
    const quern::Session session("cpu");
    const quern::Kernel kernel = session.load_cuda(source(100)).kernel();
    for (int i = 0; i < 12; ++i) {
      loads.push_back(session.load_async(quern::SourceLanguage::cuda, source(i)));
      preparations.push_back(kernel.prepare_async({static_cast<std::uint32_t>(32 + i)}));
    }
    session.load_async(quern::SourceLanguage::cuda, source(50)).detach();
    const int wait_ms = count > 1 ? std::atoi(arguments[1]) : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    if (wait_ms % 2 == 1) std::exit(0);
  } catch (const quern::Error& error) {
    if (error.code() != quern::ErrorCode::not_found) throw;
    std::printf("SKIPPED: %s\n", error.what());
  }
  return 0;
}
