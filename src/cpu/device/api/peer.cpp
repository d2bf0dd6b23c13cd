// SPDX-License-Identifier: Apache-2.0
// Devices as peers. All devices share the process's memory: each can access the others', and an access that
// was not enabled is not detected.
#include "cpu/device/cuda_api.hpp"

#include "cpu/device/atomic_capabilities.hpp"
#include "cpu/device/driver.hpp"
#include "cpu/device/graph/capture.hpp"

using namespace quern::cpu::device;

namespace {

/// Throws Failure(CUDA_ERROR_INVALID_DEVICE) unless they are two devices.
void require_two_devices(const Driver& driver, CUdevice source, CUdevice destination) {
  require(driver.device(source) != driver.device(destination), CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace

CUresult cuDeviceCanAccessPeer(int* can_access, CUdevice device, CUdevice peer) {
  return entry([&] {
    const Driver& driver = Driver::get();
    const std::uint32_t from = driver.device(device), to = driver.device(peer);
    require(can_access != nullptr);
    *can_access = from != to ? 1 : 0;
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    require(peer != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    require(flags == 0);
    const auto other = driver.contexts().state_of(peer);
    require(other->device != context->device, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    const quern::base::LockGuard lock(context->peers_mutex);
    require(context->peers.insert(other->id).second, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    refuse_unsafe_call();
    const auto other = driver.contexts().state_of(peer);
    const quern::base::LockGuard lock(context->peers_mutex);
    require(context->peers.erase(other->id) == 1, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  });
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                 CUdevice destination) {
  return entry([&] {
    require_two_devices(Driver::get(), source, destination);
    require(value != nullptr);
    switch (attribute) {
      case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
      case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        *value = 1;
        return;
      case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
      case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
      case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
        *value = 0;
        return;
    }
    fail(CUDA_ERROR_INVALID_VALUE);
  });
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned* capabilities, const CUatomicOperation* operations,
                                          unsigned count, CUdevice source, CUdevice destination) {
  return entry([&] {
    const Driver& driver = Driver::get();
    require_two_devices(driver, source, destination);
    require(capabilities != nullptr && operations != nullptr && count > 0);
    for (unsigned i = 0; i < count; ++i)
      capabilities[i] = atomic_capabilities(operations[i], driver.compute_capability());
  });
}
