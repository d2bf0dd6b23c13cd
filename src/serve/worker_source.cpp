// SPDX-License-Identifier: Apache-2.0
#include "serve/worker_source.hpp"

#include <chrono>
#include <utility>

#include "base/clock.hpp"
#include "serve/log.hpp"
#include "serve/toolkit_identity.hpp"

namespace quern::serve {
namespace {

constexpr auto kStartTimeout = std::chrono::seconds(60);
constexpr std::int64_t kBetweenLooks_ns = 2'000'000'000;  // at the files of the toolkit

}  // namespace

WorkerSource::WorkerSource(const Settings& settings, Metrics& metrics, cache::DiskStore* disk)
    : settings_(settings), metrics_(metrics), disk_(disk) {
  if (settings.precompiled_bytes != 0) precompiling_ = std::thread([this] { run_precompiling(); });
}

WorkerSource::~WorkerSource() {
  if (precompiling_.joinable()) precompiling_.join();
}

void WorkerSource::stop() {
  const base::LockGuard lock(mutex_);
  stopping_ = true;
  precompiled_there_.notify_all();
}

bool WorkerSource::is_stopping() const {
  const base::LockGuard lock(mutex_);
  return stopping_;
}

std::shared_ptr<const PoolFacts> WorkerSource::facts() const {
  const base::LockGuard lock(mutex_);
  return facts_;
}

void WorkerSource::note_compile(const abi::KernelRequest& request, double seconds) {
  precompiled_.note_compile(request, seconds);
  precompiled_there_.notify_all();
}

void WorkerSource::end_worker(WorkerSlot& slot) {
  if (slot.worker) --metrics_.workers;
  slot.worker.reset();
}

bool WorkerSource::renew_worker(WorkerSlot& slot) {
  const std::shared_ptr<NurseryProcess> current = nursery();
  if (!current) return false;
  if (slot.worker && slot.worker->has_ended()) {
    end_worker(slot);
    ++metrics_.worker_restarts;
  }
  const bool is_used_up = slot.worker && slot.worker->request_count() >= settings_.worker_requests;
  if (slot.worker && !is_used_up && slot.nursery == current && slot.header_count == current->header_count())
    return true;
  const std::uint64_t header_count = current->header_count();
  Expected<WorkerProcess> forked = current->fork_worker(kStartTimeout);
  if (!forked) {
    log_event(Level::error, "worker-not-started", {{"reason", forked.errors().front().message}});
    drop_nursery(current);
    return false;
  }
  note_worker(*current, forked->hello());
  end_worker(slot);
  ++metrics_.workers;
  slot = WorkerSlot{*std::move(forked), current, header_count};
  return true;
}

std::shared_ptr<NurseryProcess> WorkerSource::nursery() {
  const std::uint64_t generation = generation_;
  const base::LockGuard one(nursing_);
  const bool is_current = nursery_ && nursery_generation_ == generation && !has_toolkit_changed();
  return is_current || start_nursery(generation) ? nursery_ : nullptr;
}

bool WorkerSource::has_toolkit_changed() {
  const std::int64_t now_ns = base::now_ns();
  if (now_ns - looked_ns_ < kBetweenLooks_ns) return false;
  looked_ns_ = now_ns;
  return toolkit_stamp(nursery_->hello()) != nursery_->toolkit().stamp;
}

bool WorkerSource::start_nursery(std::uint64_t generation) {
  nursery_.reset();
  metrics_.precompiled_headers = metrics_.precompiled_bytes = 0;
  auto started =
      NurseryProcess::start({settings_.worker_memory_bytes, settings_.precompiled_bytes != 0}, kStartTimeout);
  if (!started) {
    log_event(Level::error, "worker-not-started", {{"reason", started.errors().front().message}});
    return false;
  }
  nursery_ = *std::move(started);
  nursery_generation_ = generation;
  nursery_->set_toolkit(identify_toolkit(nursery_->hello(), disk_));
  looked_ns_ = base::now_ns();
  precompiled_.begin_anew();
  precompiled_there_.notify_all();
  return true;
}

void WorkerSource::drop_nursery(const std::shared_ptr<NurseryProcess>& nursery) {
  const base::LockGuard one(nursing_);
  if (nursery_ == nursery) nursery_.reset();
}

void WorkerSource::note_worker(const NurseryProcess& nursery, const WorkerHello& hello) {
  {
    const base::LockGuard lock(mutex_);
    if (facts_ && facts_->toolkit.digest == nursery.toolkit().identity.digest &&
        facts_->problem == hello.problem)
      return;
    facts_ = std::make_shared<const PoolFacts>(
        PoolFacts{nursery.toolkit().identity, hello.problem, hello.sandbox});
  }
  log_event(hello.problem.empty() ? Level::info : Level::error, "toolkit",
            {{"nvrtc", hello.nvrtc_path},
             {"version", hello.nvrtc_version},
             {"headers", hello.headers_version},
             {"digest", nursery.toolkit().identity.digest},
             {"problem", hello.problem}});
  const bool whole = hello.sandbox.missing.empty();
  log_event(whole ? Level::info : Level::warning, "sandbox",
            {{"landlock", std::int64_t{hello.sandbox.landlock}},
             {"seccomp", std::int64_t{hello.sandbox.seccomp}},
             {"limits", std::int64_t{hello.sandbox.limits}},
             {"missing", hello.sandbox.missing}});
}

void WorkerSource::run_precompiling() {
  while (!is_stopping()) {
    const std::optional<abi::KernelRequest> lines = precompiled_.take();
    if (lines && metrics_.precompiled_bytes < settings_.precompiled_bytes) {
      precompile(*lines);
      continue;
    }
    const base::LockGuard lock(mutex_);
    if (!stopping_) precompiled_there_.wait_for(mutex_, std::chrono::seconds(1), [] { return false; });
  }
}

void WorkerSource::precompile(const abi::KernelRequest& lines) {
  std::shared_ptr<NurseryProcess> current;
  {
    const base::LockGuard one(nursing_);
    current = nursery_;
  }
  if (!current) return;
  const std::int64_t begin = base::now_ns();
  const Expected<std::uint64_t> size = current->precompile(lines, [this] { return !is_stopping(); });
  const double ms = static_cast<double>(base::now_ns() - begin) * 1e-6;
  if (!size)
    return log_event(Level::warning, "not-precompiled",
                     {{"lines", lines.source.text}, {"reason", size.errors().front().message}, {"ms", ms}});
  ++metrics_.precompiled_headers;
  metrics_.precompiled_bytes += *size;
  log_event(Level::info, "precompiled",
            {{"lines", lines.source.text}, {"bytes", static_cast<std::int64_t>(*size)}, {"ms", ms}});
}

}  // namespace quern::serve
