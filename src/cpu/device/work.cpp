// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/work.hpp"

#include <utility>
#include <vector>

#include "cpu/device/graph/capture.hpp"
#include "cpu/device/graph/node_params.hpp"
#include "cpu/engine/mapping.hpp"

namespace quern::cpu::device {
namespace {

/// Memory that work names, found.
struct Found {
  std::byte* address = nullptr;
  std::shared_ptr<const void> keep;  ///< null: ordinary host memory
  engine::Range registered{};        ///< the allocation, if it is registered memory
};

Found find_device(Driver& driver, std::byte* address, std::uint64_t bytes, engine::Access needed) {
  std::vector<std::shared_ptr<engine::Allocation>> found = driver.memory().find_all(address, bytes, needed);
  require(!found.empty());
  const engine::Allocation& first = *found.front();
  engine::Range registered;
  if (first.kind == engine::AllocationKind::registered) registered = {first.base, first.bytes};
  if (first.kind == engine::AllocationKind::shadow) {  // the host's memory is what both agree on
    const std::shared_ptr<engine::Mapping> mapping = first.shadow_of.lock();
    require(mapping != nullptr);
    address = mapping->host() + (address - first.base);
    registered = {mapping->host(), first.bytes};
  }
  if (found.size() == 1) return {address, std::move(found.front()), registered};
  return {address, std::make_shared<std::vector<std::shared_ptr<engine::Allocation>>>(std::move(found))};
}

Found find_unified(Driver& driver, std::byte* address, std::uint64_t bytes, engine::Access needed) {
  require(address != nullptr);
  if (const auto registered = driver.memory().find(address);
      registered != nullptr && registered->kind == engine::AllocationKind::registered)
    return find_device(driver, address, bytes, needed);
  if (driver.window().reaches(address)) return find_device(driver, address, bytes, needed);
  return {address, nullptr};
}

/// Throws Failure if it needs more than 64 bits.
std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  require(!__builtin_mul_overflow(a, b, &product));
  return product;
}
std::uint64_t add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  require(!__builtin_add_overflow(a, b, &sum));
  return sum;
}

/// From the first byte to the end of the last row. No extent is 0.
std::uint64_t span_bytes(const engine::TransferJob& job, const engine::Strides& strides) {
  const std::uint64_t rows = job.rows > 1 ? multiply(job.rows - 1, strides.row_bytes) : 0;
  const std::uint64_t slices = job.slices > 1 ? multiply(job.slices - 1, strides.slice_bytes) : 0;
  return add(add(rows, slices), job.bytes);
}

Found find(Driver& driver, const CopySide& side, std::uint64_t bytes, engine::Access needed) {
  return side.kind == AddressKind::device ? find_device(driver, side.address, bytes, needed)
                                          : find_unified(driver, side.address, bytes, needed);
}

/// Rows and slices that follow each other without a gap become one row.
void join_rows(engine::TransferJob& job) {
  engine::Strides& to = job.destination_strides;
  engine::Strides& from = job.source_strides;
  const bool copies = job.source != nullptr;
  if (job.rows > 1 && to.row_bytes == job.bytes && (!copies || from.row_bytes == job.bytes)) {
    job.bytes *= job.rows;
    job.rows = 1;
  }
  if (job.rows == 1 && job.slices > 1 && to.slice_bytes == job.bytes &&
      (!copies || from.slice_bytes == job.bytes)) {
    job.bytes *= job.slices;
    job.slices = 1;
  }
}

/// Copies ordinary host memory aside, so that its owner may change it.
void stage(engine::TransferJob& job) {
  const std::uint64_t slice_bytes = job.bytes * job.rows;
  job.staged = std::make_unique_for_overwrite<std::byte[]>(slice_bytes * job.slices);
  engine::TransferJob aside;
  aside.destination = job.staged.get();
  aside.source = job.source;
  aside.bytes = job.bytes;
  aside.rows = job.rows;
  aside.slices = job.slices;
  aside.destination_strides = {job.bytes, slice_bytes};
  aside.source_strides = job.source_strides;
  static_cast<void>(engine::run(aside));
  job.source = job.staged.get();
  job.source_strides = aside.destination_strides;
}

void wait_for(Driver& driver, const StreamObject& stream) {
  driver.scheduler().synchronize(stream.stream);
  check_fault(*stream.context);
}

/// For a stream without pending work. It may be empty because a fault, since the call began, has dropped the
/// work before the copy.
void run_at_once(Driver& driver, const ContextState& context, const engine::TransferJob& job) {
  if (!engine::run(job)) driver.scheduler().lose_memory(*context.domain);
  check_fault(context);
}

bool has_ordinary_source(const engine::TransferJob& job) {
  return job.source != nullptr && job.keep_source == nullptr;
}
bool has_ordinary_target(const engine::TransferJob& job) { return job.keep_destination == nullptr; }

/// True if the host does not wait for synchronous work there.
bool is_on_device(Driver& driver, const void* address) {
  const auto allocation = driver.memory().find(address);
  return allocation != nullptr && engine::is_device_memory(allocation->kind) &&
         !engine::is_pooled_on_host(*allocation) && !allocation->synchronous.load();
}

void submit(Driver& driver, const StreamObject& stream, engine::TransferJob job, SourceAccess access) {
  const bool ordinary_target = has_ordinary_target(job);
  if ((has_ordinary_source(job) || ordinary_target) && driver.scheduler().runs_at_once(*stream.stream))
    return run_at_once(driver, *stream.context, job);
  if (has_ordinary_source(job) && access == SourceAccess::during_call) stage(job);
  driver.scheduler().submit(stream.stream, std::move(job));
  if (ordinary_target) wait_for(driver, stream);
}

void submit_synchronous(Driver& driver, const StreamObject& stream, engine::TransferJob job) {
  if (driver.scheduler().runs_at_once(*stream.stream)) return run_at_once(driver, *stream.context, job);
  const bool host_waits =
      !is_on_device(driver, job.destination) || (job.source != nullptr && !is_on_device(driver, job.source));
  driver.scheduler().submit(stream.stream, std::move(job));
  if (host_waits) wait_for(driver, stream);
}

SourceAccess source_access(const Work& work) {
  const auto* const copy = std::get_if<CopyWork>(&work);
  return copy == nullptr ? SourceAccess::during_call : copy->source_access;
}

}  // namespace

bool is_empty(const CopyWork& work) noexcept {
  return work.width_bytes == 0 || work.height == 0 || work.depth == 0;
}
bool is_empty(const FillWork& work) noexcept { return work.width == 0 || work.height == 0; }

engine::TransferJob make_job(Driver& driver, const CopyWork& work) {
  engine::TransferJob job;
  job.bytes = work.width_bytes;
  job.rows = work.height;
  job.slices = work.depth;
  job.destination_strides = work.destination.strides;
  job.source_strides = work.source.strides;
  Found destination =
      find(driver, work.destination, span_bytes(job, job.destination_strides), engine::Access::read_write);
  Found source = find(driver, work.source, span_bytes(job, job.source_strides), engine::Access::read);
  job.destination = destination.address;
  job.source = source.address;
  job.keep_destination = std::move(destination.keep);
  job.keep_source = std::move(source.keep);
  job.registered = {destination.registered, source.registered};
  join_rows(job);
  return job;
}

engine::TransferJob make_job(Driver& driver, const FillWork& work) {
  engine::TransferJob job;
  job.bytes = multiply(work.width, work.pattern_bytes);
  job.rows = work.height;
  job.destination_strides.row_bytes = work.pitch_bytes;
  job.pattern = work.pattern;
  job.pattern_bytes = work.pattern_bytes;
  require(work.destination % work.pattern_bytes == 0);
  require(work.height == 1 || (work.pitch_bytes % work.pattern_bytes == 0 && work.pitch_bytes >= job.bytes));
  Found found = find_device(driver, reinterpret_cast<std::byte*>(work.destination),
                            span_bytes(job, job.destination_strides), engine::Access::read_write);
  job.destination = found.address;
  job.keep_destination = std::move(found.keep);
  job.registered[0] = found.registered;
  join_rows(job);
  return job;
}

void enqueue(Driver& driver, const StreamObject& stream, const Work& work) {
  if (is_capturing(stream)) return record(driver, stream, node_of(driver, work));
  if (std::visit([](const auto& each) { return is_empty(each); }, work)) return;
  submit(driver, stream, std::visit([&](const auto& each) { return make_job(driver, each); }, work),
         source_access(work));
}

void enqueue_synchronous(Driver& driver, const Work& work) {
  const StreamObject stream = driver.stream_of(nullptr);
  refuse_capturing(stream);
  if (std::visit([](const auto& each) { return is_empty(each); }, work)) return;
  submit_synchronous(driver, stream,
                     std::visit([&](const auto& each) { return make_job(driver, each); }, work));
}

}  // namespace quern::cpu::device
