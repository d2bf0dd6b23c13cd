// SPDX-License-Identifier: Apache-2.0
// Copies of boxes (2-D and 3-D), within a context and between contexts. There are no CUDA arrays on this
// device: a copy that names one is refused.
#include "cpu/device/cuda_api.hpp"

#include "cpu/device/boxes.hpp"
#include "cpu/device/driver.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/work.hpp"

using namespace quern::cpu::device;

namespace {

template <class Box>
CopyWork copy_of_box(const Box* box) {
  require(box != nullptr);
  return copy_of(*box);
}

template <class Copy>
CUresult now(const Copy* copy) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    enqueue_synchronous(driver, copy_of_box(copy));
  });
}

template <class Copy>
CUresult async(const Copy* copy, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    enqueue(driver, its_stream, copy_of_box(copy));
  });
}

/// A copy between contexts is ordered after all that both have been given, and before what follows. A null
/// context is the current one.
void wait_for_peers(Driver& driver, CUcontext to, CUcontext from) {
  driver.contexts().synchronize_handle(Contexts::or_current(to));
  if (from != to) driver.contexts().synchronize_handle(Contexts::or_current(from));
}

void require_contexts(Driver& driver, CUcontext to, CUcontext from) {
  for (const CUcontext context : {to, from})
    if (context != nullptr) driver.contexts().device_of(context);
}

Work peer_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  CopyWork work;
  work.destination = {reinterpret_cast<std::byte*>(to), AddressKind::device, {}};
  work.source = {reinterpret_cast<std::byte*>(from), AddressKind::device, {}};
  work.width_bytes = bytes;
  return work;
}

}  // namespace

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) { return now(copy); }
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) { return now(copy); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) { return async(copy, stream); }
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) { return now(copy); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) { return async(copy, stream); }

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                      std::size_t bytes) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require_contexts(driver, to_context, from_context);
    wait_for_peers(driver, to_context, from_context);
    enqueue_synchronous(driver, peer_copy(to, from, bytes));
  });
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           std::size_t bytes, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    refuse_capturing(its_stream);
    require_contexts(driver, to_context, from_context);
    enqueue(driver, its_stream, peer_copy(to, from, bytes));
  });
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(copy != nullptr);
    require_contexts(driver, copy->dstContext, copy->srcContext);
    const Work work = copy_of_box(copy);
    wait_for_peers(driver, copy->dstContext, copy->srcContext);
    enqueue_synchronous(driver, work);
  });
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    require(copy != nullptr);
    require_contexts(driver, copy->dstContext, copy->srcContext);
    enqueue(driver, its_stream, copy_of_box(copy));
  });
}
