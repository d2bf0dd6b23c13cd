// SPDX-License-Identifier: Apache-2.0
#include "runtime/array/buffer.hpp"

#include <fmt/format.h>

#include "quern/error.hpp"
#include "runtime/array/transfer.hpp"
#include "runtime/context/stream.hpp"
#include "runtime/device/exit.hpp"

namespace quern {
namespace runtime {
namespace {

/// Releases the memory with its last view, unless queued work uses it: work that has run, but whose
/// completion was not checked since, must not keep it alive.
struct ForeignState : BufferState {
  ForeignState() = default;
  ForeignState(const ForeignState&) = delete;
  ForeignState& operator=(const ForeignState&) = delete;
  ~ForeignState() {
    memory.reset();
    if (!process_is_exiting()) context->work().reap();
  }
};

}  // namespace

DeviceBuffer make_buffer(std::shared_ptr<Context> context, std::size_t size_bytes, StreamView stream) {
  auto state = std::make_shared<BufferState>();
  state->size_bytes = size_bytes;
  if (size_bytes > 0) {
    const std::shared_ptr<Resource> memory = context->allocation().allocate(size_bytes, stream);
    const Release& item = memory->item();
    state->address = item.handle;
    state->stream_handle = item.stream_handle;
    if (item.allocator != nullptr && item.allocator->is_stream_ordered())
      state->retention = stream.handle() == CU_STREAM_PER_THREAD ? Retention::all : Retention::other_streams;
    state->memory = memory;
  }
  state->context = std::move(context);
  return DeviceBuffer(std::move(state));
}

DeviceBuffer adopt_buffer(std::shared_ptr<Context> context, CUdeviceptr address, std::size_t size_bytes,
                          std::shared_ptr<const void> owner, bool read_only) {
  auto state = std::make_shared<ForeignState>();
  state->context = std::move(context);
  state->address = address;
  state->size_bytes = size_bytes;
  if (owner != nullptr) state->retention = Retention::all;
  state->memory = std::move(owner);
  state->read_only = read_only;
  return DeviceBuffer(std::move(state));
}

std::shared_ptr<Context> shared_context_of(const DeviceBuffer& buffer) {
  if (buffer.state() != nullptr) return buffer.state()->context;
  throw Error(ErrorCode::usage,
              "a default-constructed array has no memory; make one with session.device_array()");
}

Context& context_of(const DeviceBuffer& buffer) { return *shared_context_of(buffer); }

}  // namespace runtime

namespace {

using runtime::BufferState;
using runtime::CurrentContext;
using runtime::DeviceSide;
using runtime::HostSide;

/// The `bytes` at `offset` of a buffer, as an array of bytes.
struct Range {
  Layout layout;
  CUdeviceptr address;
  std::shared_ptr<const void> keep;

  Range(const BufferState* state, std::size_t offset, std::size_t bytes, const char* what)
      : layout({static_cast<std::int64_t>(bytes)}, 1), address(0) {
    const std::size_t size = state != nullptr ? state->size_bytes : 0;
    if (offset > size || bytes > size - offset)
      throw Error(
          ErrorCode::usage,
          fmt::format("cannot {} {} bytes at offset {}: the buffer has {} bytes; give a range inside it",
                      what, bytes, offset, size));
    if (state == nullptr) return;
    address = state->address + offset;
    keep = state->memory;
  }
  DeviceSide side() const { return {address, layout, keep}; }
  HostSide host(const std::byte* data) const {
    return {const_cast<std::byte*>(data), layout, nullptr, false};
  }
};

void require_writable(const BufferState* state) {
  if (state != nullptr && state->read_only)
    throw Error(ErrorCode::usage,
                "cannot write to the buffer: its producer declared the memory read-only; copy() the array");
}

void send(const std::shared_ptr<const BufferState>& state, std::span<const std::byte> source,
          std::size_t offset, std::optional<StreamView> stream) {
  require_writable(state.get());
  const Range range(state.get(), offset, source.size(), "copy from the host");
  if (!source.empty())
    runtime::copy_to_device(*state->context, range.side(), range.host(source.data()), stream);
}

void fetch(const std::shared_ptr<const BufferState>& state, std::span<std::byte> target, std::size_t offset,
           std::optional<StreamView> stream) {
  const Range range(state.get(), offset, target.size(), "copy to the host");
  if (!target.empty())
    runtime::copy_to_host(*state->context, range.host(target.data()), range.side(), stream);
}

void move(const std::shared_ptr<const BufferState>& to, const DeviceBuffer& from,
          std::optional<StreamView> stream) {
  require_writable(to.get());
  const Range target(to.get(), 0, from.size_bytes(), "copy on the device");
  const Range source(from.state().get(), 0, from.size_bytes(), "copy on the device");
  if (from.size_bytes() == 0) return;
  const runtime::ContextUse use(*from.state()->context);
  runtime::copy_on_device(*to->context, target.side(), source.side(), stream);
}

}  // namespace

void* DeviceBuffer::data() const noexcept {
  return state_ != nullptr ? reinterpret_cast<void*>(static_cast<std::uintptr_t>(state_->address)) : nullptr;
}

std::size_t DeviceBuffer::size_bytes() const noexcept { return state_ != nullptr ? state_->size_bytes : 0; }

void DeviceBuffer::copy_from_host(std::span<const std::byte> source, std::size_t offset_bytes,
                                  std::optional<StreamView> stream) const {
  send(state_, source, offset_bytes, stream);
}
void DeviceBuffer::copy_to_host(std::span<std::byte> target, std::size_t offset_bytes,
                                std::optional<StreamView> stream) const {
  fetch(state_, target, offset_bytes, stream);
}
void DeviceBuffer::copy_from(const DeviceBuffer& source, std::optional<StreamView> stream) const {
  move(state_, source, stream);
}

namespace {

/// The bytes are set on return.
void fill_now(const BufferState& state, std::byte value) {
  state.context->check(state.context->api().cuMemsetD8_v2(
                           state.address, std::to_integer<unsigned char>(value), state.size_bytes),
                       "cuMemsetD8_v2", "fill device memory");
  state.context->waiting().synchronize(nullptr);  // in device memory the driver's call only queues
}

}  // namespace

void DeviceBuffer::fill(std::byte value, std::optional<StreamView> stream) const {
  require_writable(state_.get());
  if (size_bytes() == 0) return;
  const CurrentContext current(*state_->context);
  if (!stream) return fill_now(*state_, value);
  const CUstream handle = runtime::stream_handle(*stream, *state_->context);
  runtime::InFlight::Work work;
  if (runtime::needs_keeping(*this, handle)) work.keep.push_back(state_->memory);
  state_->context->check(
      state_->context->api().cuMemsetD8Async(state_->address, std::to_integer<unsigned char>(value),
                                             state_->size_bytes, handle),
      "cuMemsetD8Async", "queue filling device memory");
  if (!work.keep.empty()) state_->context->work().after(handle, std::move(work));
}

}  // namespace quern
