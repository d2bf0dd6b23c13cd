// SPDX-License-Identifier: Apache-2.0
// A server of eight tenants who send kernels of their own, one of which faults every time. Each tenant works
// in an isolated session, so the faulty one loses its own work and gets a new session; the others are not
// affected.
#include <array>
#include <cstdio>
#include <memory>
#include <quern/quern.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kTenants = 8;
constexpr int kFaulty = 3;
constexpr int kRequests = 20;

/// The source that a tenant sends. The faulty one's kernel stores far behind its array.
std::string source_of(int tenant) {
  const std::string index = tenant == kFaulty ? "i + (1ll << 40)" : "i";
  return "extern \"C\" __global__ void answer(int* x, int by) {\n"
         "  long long i = blockIdx.x * blockDim.x + threadIdx.x;\n"
         "  x[" +
         index +
         "] *= by;\n"
         "}";
}

struct Account {
  int answered = 0;
  int faults = 0;
  bool right = true;
};

/// One tenant's session and the objects made in it. After a fault it is replaced as a whole.
struct Place {
  quern::Session session{quern::SessionOptions{.device = "cpu", .isolated = true}};
  quern::Kernel kernel;
  explicit Place(int tenant) : kernel(session.load_cuda(source_of(tenant)).kernel("answer")) {}
};

void serve(int tenant, Account& account) {
  std::unique_ptr<Place> place;
  for (int request = 0; request < kRequests; ++request) try {
      if (place == nullptr) place = std::make_unique<Place>(tenant);
      const quern::DeviceArray<int> array = place->session.to_device(std::vector<int>(256, request));
      place->kernel({.grid = 1, .block = 256})(array, tenant);
      account.right = account.right && array.copy_to_host() == std::vector<int>(256, request * tenant);
      ++account.answered;
    } catch (const quern::DriverError& error) {
      if (error.code() != quern::ErrorCode::device_fault) throw;
      if (++account.faults == 1) std::printf("tenant %d: %s\n", tenant, error.what());
      place.reset();
    }
}

}  // namespace

int main() try {
  std::array<Account, kTenants> accounts;
  std::vector<std::thread> threads;
  for (int tenant = 0; tenant < kTenants; ++tenant)
    threads.emplace_back([&, tenant] { serve(tenant, accounts[static_cast<std::size_t>(tenant)]); });
  for (std::thread& thread : threads) thread.join();
  bool good = true;
  for (int tenant = 0; tenant < kTenants; ++tenant) {
    const Account& account = accounts[static_cast<std::size_t>(tenant)];
    std::printf("tenant %d: %d answered, %d faults\n", tenant, account.answered, account.faults);
    const bool faulty = tenant == kFaulty;
    good = good && account.right && account.answered == (faulty ? 0 : kRequests) &&
           account.faults == (faulty ? kRequests : 0);
  }
  return good ? 0 : 1;
} catch (const quern::Error& error) {
  std::fprintf(stderr, "tenants: %s\n", error.what());
  return 1;
}
