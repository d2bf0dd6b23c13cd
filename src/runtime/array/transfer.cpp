// SPDX-License-Identifier: Apache-2.0
#include "runtime/array/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/progress.hpp"
#include "quern/error.hpp"
#include "runtime/context/stream.hpp"
#include "runtime/copy/copy_kernel.hpp"
#include "runtime/copy/host_targets.hpp"
#include "runtime/copy/staging.hpp"
#include "runtime/copy/strided.hpp"

namespace quern::runtime {
namespace {

/// The first byte of the range that a dense array fills.
CUdeviceptr first_byte(const DeviceSide& side) {
  return side.address + static_cast<std::uint64_t>(side.layout.reach().lowest);
}
std::byte* first_byte(const HostSide& side) { return side.data + side.layout.reach().lowest; }

auto attempted(const char* what, std::size_t bytes) {
  return [what, bytes] { return fmt::format("copy {} bytes {}", bytes, what); };
}

/// An array of `layout`'s shape in contiguous device memory of its own, for elements that must be gathered or
/// scattered there.
struct Temporary {
  Layout layout;
  std::shared_ptr<Resource> memory;

  Temporary(Context& context, const Layout& shape_of, StreamView stream)
      : layout(shape_of.contiguous(Order::c)),
        memory(context.allocation().allocate(layout.size_bytes(), stream)) {}
  DeviceSide side() const { return {static_cast<CUdeviceptr>(memory->item().handle), layout, memory}; }
};

void copy_by_kernel(Context& context, const DeviceSide& to, const DeviceSide& from, CUstream stream) {
  context.copy_kernels().copy(to.address, from.address, plan_copy(to.layout, from.layout), stream);
}

/// Waits if the caller wants it done on return; otherwise keeps the objects that the queued work uses.
void finish(Context& context, const std::optional<StreamView>& stream, CUstream handle, InFlight::Work work) {
  if (stream)
    context.work().after(handle, std::move(work));
  else
    context.waiting().synchronize(handle);
}

/// True if a queued copy may access the host array itself: it owns its memory, which is page-locked and which
/// `keep` keeps locked.
bool is_direct(const Context& context, const HostSide& host, const Layout& device,
               std::vector<std::shared_ptr<const void>>& keep) {
  if (host.keep == nullptr || !device.same_places(host.layout)) return false;
  std::shared_ptr<const void> lock = host.keep;
  if (!host.page_locked)
    lock = context.locked_memory().lock_on(first_byte(host), host.layout.reach().size_bytes());
  if (lock == nullptr) return false;
  keep.push_back(host.keep);
  keep.push_back(std::move(lock));
  return true;
}

/// If there is a progress handler, copies of at least this size are reported to it and made in pieces.
constexpr std::size_t kLongCopyBytes = std::size_t{16} << 20;
constexpr std::size_t kPieceBytes = std::size_t{8} << 20;

/// `copy(first, count)` copies `count` bytes from byte `first` on.
template <class Copy>
void copy_in_pieces(Context& context, ProgressStage stage, std::size_t bytes, Copy&& copy) {
  if (bytes < kLongCopyBytes || context.progress().empty()) return copy(std::size_t{0}, bytes);
  base::Work work(&context.progress(), stage, "", bytes);
  std::size_t done = 0;
  bool goes_on = work.begin();
  while (goes_on && done < bytes) {
    const std::size_t count = std::min(kPieceBytes, bytes - done);
    copy(done, count);
    done += count;
    if (done < bytes) goes_on = work.advance(done);
  }
  if (done == bytes) return work.finish(bytes);
  throw Error(ErrorCode::cancelled,
              fmt::format("cannot {}: the progress handler cancelled it after {} of {} bytes",
                          to_string(stage), done, bytes));
}

// --- host to device

/// Called before this thread reads or writes host memory that queued copies may not have filled yet.
void wait_for_earlier_copies(Context& context, const HostSide& side) {
  context.host_targets().wait_for(first_byte(side), side.layout.reach().size_bytes());
}

void send_now(Context& context, const DeviceSide& to, const HostSide& from) {
  const std::size_t bytes = to.layout.size_bytes();
  const std::byte* source = first_byte(from);
  wait_for_earlier_copies(context, from);
  std::unique_ptr<std::byte[]> packed;
  if (!to.layout.same_places(from.layout)) {
    packed = std::make_unique_for_overwrite<std::byte[]>(bytes);
    copy_on_host(packed.get() - to.layout.reach().lowest, from.data, plan_copy(to.layout, from.layout));
    source = packed.get();
  }
  copy_in_pieces(context, ProgressStage::copy_to_device, bytes, [&](std::size_t first, std::size_t count) {
    context.check(context.api().cuMemcpyHtoD_v2(first_byte(to) + first, source + first, count),
                  "cuMemcpyHtoD_v2", attempted("to the device", bytes));
  });
}

void send_later(Context& context, const DeviceSide& to, const HostSide& from, CUstream stream) {
  const std::size_t bytes = to.layout.size_bytes();
  const std::byte* source = first_byte(from);
  InFlight::Work work;
  work.keep.push_back(to.keep);
  if (!is_direct(context, from, to.layout, work.keep)) {
    wait_for_earlier_copies(context, from);
    std::shared_ptr<std::byte> staged = context.staging().take(bytes);
    copy_on_host(staged.get() - to.layout.reach().lowest, from.data, plan_copy(to.layout, from.layout));
    source = staged.get();
    work.keep.push_back(std::move(staged));
  }
  context.check(context.api().cuMemcpyHtoDAsync_v2(first_byte(to), source, bytes, stream),
                "cuMemcpyHtoDAsync_v2", attempted("to the device on a stream", bytes));
  context.work().after(stream, std::move(work));
}

// --- device to host

void fetch_now(Context& context, const HostSide& to, const DeviceSide& from) {
  const std::size_t bytes = from.layout.size_bytes();
  std::byte* target = first_byte(to);
  wait_for_earlier_copies(context, to);
  std::unique_ptr<std::byte[]> packed;
  const bool direct = to.layout.same_places(from.layout);
  if (!direct) {
    packed = std::make_unique_for_overwrite<std::byte[]>(bytes);
    target = packed.get();
  }
  const Cancellations::Check check(*context.waiting().cancellations(), CU_STREAM_LEGACY);
  copy_in_pieces(context, ProgressStage::copy_to_host, bytes, [&](std::size_t first, std::size_t count) {
    context.check(context.api().cuMemcpyDtoH_v2(target + first, first_byte(from) + first, count),
                  "cuMemcpyDtoH_v2", attempted("to the host", bytes));
  });
  check.require_none();
  if (!direct)
    copy_on_host(to.data, packed.get() - from.layout.reach().lowest, plan_copy(to.layout, from.layout));
}

/// The target gets its values when the stream has reached the copy: from the staging block, by the driver's
/// thread. `gathered`: the array that a kernel gathers into `from` first; that kernel is queued here, after
/// all steps that are likely to fail, so that its source is kept.
void fetch_later(Context& context, const HostSide& to, const DeviceSide& from, CUstream stream,
                 const DeviceSide* gathered = nullptr) {
  const std::size_t bytes = from.layout.size_bytes();
  std::byte* target = first_byte(to);
  InFlight::Work work;
  work.keep = {from.keep, to.keep};
  if (gathered != nullptr) work.keep.push_back(gathered->keep);
  const std::size_t reach_bytes = to.layout.reach().size_bytes();
  const bool direct = is_direct(context, to, from.layout, work.keep);
  if (!direct) context.host_targets().order_behind(target, reach_bytes, stream);
  const auto expected = context.host_targets().expect(target, reach_bytes, stream);
  work.keep.push_back(expected);
  work.run = [expected = expected.get()] { expected->filled(); };
  if (!direct) {
    std::shared_ptr<std::byte> staged = context.staging().take(bytes);
    target = staged.get();
    work.run = [plan = plan_copy(to.layout, from.layout), data = to.data,
                packed = target - from.layout.reach().lowest, expected = expected.get()] {
      copy_on_host(data, packed, plan);
      expected->filled();
    };
    work.keep.push_back(std::move(staged));
  }
  if (gathered != nullptr) copy_by_kernel(context, from, *gathered, stream);
  context.check(context.api().cuMemcpyDtoHAsync_v2(target, first_byte(from), bytes, stream),
                "cuMemcpyDtoHAsync_v2", attempted("to the host on a stream", bytes));
  context.work().after(stream, std::move(work));
  expected->queued();
}

bool overlap(const DeviceSide& a, const DeviceSide& b) {
  const CUdeviceptr a_begin = first_byte(a);
  const CUdeviceptr b_begin = first_byte(b);
  return a_begin < b_begin + b.layout.reach().size_bytes() &&
         b_begin < a_begin + a.layout.reach().size_bytes();
}

}  // namespace

void copy_to_device(Context& context, const DeviceSide& to, const HostSide& from,
                    std::optional<StreamView> stream) {
  if (to.layout.size_bytes() == 0) return;
  const CurrentContext current(context);
  const StreamView on = stream.value_or(StreamView());
  const CUstream handle = stream_handle(on, context);
  if (!to.layout.is_dense()) {
    const Temporary temporary(context, to.layout, on);
    InFlight::Work work{{}, {temporary.memory, to.keep}};
    copy_to_device(context, temporary.side(), from, stream);
    copy_by_kernel(context, to, temporary.side(), handle);
    return finish(context, stream, handle, std::move(work));
  }
  if (stream)
    send_later(context, to, from, handle);
  else
    send_now(context, to, from);
}

void copy_to_host(Context& context, const HostSide& to, const DeviceSide& from,
                  std::optional<StreamView> stream) {
  if (from.layout.size_bytes() == 0) return;
  const CurrentContext current(context);
  const StreamView on = stream.value_or(StreamView());
  const CUstream handle = stream_handle(on, context);
  if (!from.layout.is_dense()) {
    const Temporary temporary(context, from.layout, on);
    if (stream) return fetch_later(context, to, temporary.side(), handle, &from);
    copy_by_kernel(context, temporary.side(), from, handle);
    return fetch_now(context, to, temporary.side());
  }
  if (stream)
    fetch_later(context, to, from, handle);
  else
    fetch_now(context, to, from);
}

void copy_on_device(Context& context, const DeviceSide& to, const DeviceSide& from,
                    std::optional<StreamView> stream) {
  if (to.layout.size_bytes() == 0) return;
  const CurrentContext current(context);
  const StreamView on = stream.value_or(StreamView());
  const CUstream handle = stream_handle(on, context);
  const std::size_t bytes = to.layout.size_bytes();
  if (to.address == from.address && to.layout.same_places(from.layout)) return;
  InFlight::Work work{{}, {to.keep, from.keep}};  // made before anything is queued that uses it
  if (overlap(to, from)) {
    const Temporary temporary(context, to.layout, on);
    work.keep.push_back(temporary.memory);
    copy_by_kernel(context, temporary.side(), from, handle);
    copy_by_kernel(context, to, temporary.side(), handle);
    return finish(context, stream, handle, std::move(work));
  }
  if (!to.layout.is_dense() || !to.layout.same_places(from.layout)) {
    copy_by_kernel(context, to, from, handle);
    return finish(context, stream, handle, std::move(work));
  }
  const CUdeviceptr target = first_byte(to);
  const CUdeviceptr source = first_byte(from);
  if (!stream) {
    context.check(context.api().cuMemcpyDtoD_v2(target, source, bytes), "cuMemcpyDtoD_v2",
                  attempted("on the device", bytes));
    return context.waiting().synchronize(handle);  // between device memories the driver's call only queues
  }
  context.check(context.api().cuMemcpyDtoDAsync_v2(target, source, bytes, handle), "cuMemcpyDtoDAsync_v2",
                attempted("on the device on a stream", bytes));
  context.work().after(handle, std::move(work));
}

void wait_until_filled(Context& context, const NDArray& host) {
  if (host.size_bytes() == 0) return;
  const CurrentContext current(context);
  const Layout::Reach reach = host.layout().reach();
  context.host_targets().wait_for(host.data() + reach.lowest, reach.size_bytes());
}

}  // namespace quern::runtime
