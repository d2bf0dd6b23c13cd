// SPDX-License-Identifier: Apache-2.0
#include "runtime/buffer.hpp"

#include <fmt/format.h>

#include "quern/error.hpp"
#include "runtime/stream.hpp"

namespace quern {
namespace runtime {

DeviceBuffer make_buffer(std::shared_ptr<Context> context, std::size_t size_bytes) {
  auto state = std::make_shared<BufferState>();
  state->context = std::move(context);
  state->size_bytes = size_bytes;
  if (size_bytes > 0) {
    state->address = state->context->allocate(size_bytes);
    state->owner = owned(state->context, ReleaseKind::device_memory, state->address, size_bytes);
  }
  return DeviceBuffer(std::move(state));
}

}  // namespace runtime

namespace {

using runtime::BufferState;
using runtime::Context;
using runtime::CurrentContext;

/// The address of `bytes` at `offset` in the buffer, checked.
CUdeviceptr range(const BufferState* state, std::size_t offset, std::size_t bytes, const char* what) {
  const std::size_t size = state != nullptr ? state->size_bytes : 0;
  if (offset > size || bytes > size - offset)
    throw Error(
        ErrorCode::usage,
        fmt::format("cannot {} {} bytes at offset {}: the buffer has {} bytes; give a range inside it", what,
                    bytes, offset, size));
  return state != nullptr ? state->address + offset : 0;
}

/// Host bytes that live until the copy queued from them has run.
struct Staging {
  std::unique_ptr<std::byte[]> bytes;
  static void done(void* staging) { delete static_cast<Staging*>(staging); }
};

void copy_staged(const Context& context, CUdeviceptr target, std::span<const std::byte> source,
                 CUstream stream) {
  auto staging =
      std::make_unique<Staging>(Staging{std::make_unique_for_overwrite<std::byte[]>(source.size())});
  std::memcpy(staging->bytes.get(), source.data(), source.size());
  const driver::DriverTable& api = context.api();
  context.check(api.cuMemcpyHtoDAsync_v2(target, staging->bytes.get(), source.size(), stream),
                "cuMemcpyHtoDAsync_v2", fmt::format("queue a copy of {} bytes to the device", source.size()));
  const CUresult result = api.cuLaunchHostFunc(stream, &Staging::done, staging.get());
  if (result == CUDA_SUCCESS) {
    static_cast<void>(staging.release());  // done() deletes it
    return;
  }
  api.cuStreamSynchronize(stream);  // nobody will say when the copy has run: wait before the bytes go
  context.check(result, "cuLaunchHostFunc", "queue the end of a copy to the device");
}

}  // namespace

void* DeviceBuffer::data() const noexcept {
  return state_ != nullptr ? reinterpret_cast<void*>(static_cast<std::uintptr_t>(state_->address)) : nullptr;
}

std::size_t DeviceBuffer::size_bytes() const noexcept { return state_ != nullptr ? state_->size_bytes : 0; }

void DeviceBuffer::copy_from_host(std::span<const std::byte> source, std::size_t offset_bytes) const {
  const CUdeviceptr target = range(state_.get(), offset_bytes, source.size(), "copy from the host");
  if (source.empty()) return;
  const CurrentContext current(*state_->context);
  state_->context->check(state_->context->api().cuMemcpyHtoD_v2(target, source.data(), source.size()),
                         "cuMemcpyHtoD_v2", "copy to the device");
}

void DeviceBuffer::copy_from_host(std::span<const std::byte> source, std::size_t offset_bytes,
                                  StreamView stream) const {
  const CUdeviceptr target = range(state_.get(), offset_bytes, source.size(), "copy from the host");
  if (source.empty()) return;
  const CurrentContext current(*state_->context);
  copy_staged(*state_->context, target, source, runtime::stream_handle(stream, *state_->context));
}

void DeviceBuffer::copy_to_host(std::span<std::byte> target, std::size_t offset_bytes) const {
  const CUdeviceptr source = range(state_.get(), offset_bytes, target.size(), "copy to the host");
  if (target.empty()) return;
  const CurrentContext current(*state_->context);
  state_->context->check(state_->context->api().cuMemcpyDtoH_v2(target.data(), source, target.size()),
                         "cuMemcpyDtoH_v2", "copy to the host");
}

void DeviceBuffer::copy_to_host(std::span<std::byte> target, std::size_t offset_bytes,
                                StreamView stream) const {
  const CUdeviceptr source = range(state_.get(), offset_bytes, target.size(), "copy to the host");
  if (target.empty()) return;
  const CurrentContext current(*state_->context);
  const CUstream handle = runtime::stream_handle(stream, *state_->context);
  state_->context->check(
      state_->context->api().cuMemcpyDtoHAsync_v2(target.data(), source, target.size(), handle),
      "cuMemcpyDtoHAsync_v2", "queue a copy to the host");
}

void DeviceBuffer::copy_from(const DeviceBuffer& source) const {
  const CUdeviceptr target = range(state_.get(), 0, source.size_bytes(), "copy on the device");
  if (source.size_bytes() == 0) return;
  const CurrentContext current(*state_->context);
  state_->context->check(
      state_->context->api().cuMemcpyDtoD_v2(target, source.state_->address, source.size_bytes()),
      "cuMemcpyDtoD_v2", "copy on the device");
}

void DeviceBuffer::copy_from(const DeviceBuffer& source, StreamView stream) const {
  const CUdeviceptr target = range(state_.get(), 0, source.size_bytes(), "copy on the device");
  if (source.size_bytes() == 0) return;
  const CurrentContext current(*state_->context);
  const CUstream handle = runtime::stream_handle(stream, *state_->context);
  state_->context->check(state_->context->api().cuMemcpyDtoDAsync_v2(target, source.state_->address,
                                                                     source.size_bytes(), handle),
                         "cuMemcpyDtoDAsync_v2", "queue a copy on the device");
}

void DeviceBuffer::fill(std::byte value) const {
  if (size_bytes() == 0) return;
  const CurrentContext current(*state_->context);
  state_->context->check(state_->context->api().cuMemsetD8_v2(
                             state_->address, std::to_integer<unsigned char>(value), state_->size_bytes),
                         "cuMemsetD8_v2", "fill device memory");
}

void DeviceBuffer::fill(std::byte value, StreamView stream) const {
  if (size_bytes() == 0) return;
  const CurrentContext current(*state_->context);
  const CUstream handle = runtime::stream_handle(stream, *state_->context);
  state_->context->check(
      state_->context->api().cuMemsetD8Async(state_->address, std::to_integer<unsigned char>(value),
                                             state_->size_bytes, handle),
      "cuMemsetD8Async", "queue filling device memory");
}

}  // namespace quern
