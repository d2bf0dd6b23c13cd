// SPDX-License-Identifier: Apache-2.0
#include "serve/compile_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/byte_stream.hpp"
#include "base/clock.hpp"
#include "serve/log.hpp"
#include "serve/toolkit_identity.hpp"

namespace quern::serve {
namespace {

constexpr auto kLook = std::chrono::milliseconds(200);  // between looks at whether a client is still there
constexpr auto kStartPatience = std::chrono::seconds(60);
constexpr auto kAfterFailedStart = std::chrono::seconds(2);

/// The result as bytes of the disk cache, and back; null for bytes that are none.
std::string to_bytes(const Result& result) {
  base::ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(result.status)).text(result.body);
  writer.text(result.machine_code ? *result.machine_code : std::string());
  return writer.take();
}

ResultPointer from_bytes(std::string_view bytes) {
  base::ByteReader reader(bytes);
  Result result{static_cast<int>(reader.number<std::uint32_t>()), reader.string(), nullptr};
  if (std::string code = reader.string(); !code.empty())
    result.machine_code = std::make_shared<const std::string>(std::move(code));
  if (!reader.good() || !reader.at_end()) return nullptr;
  return std::make_shared<const Result>(std::move(result));
}

}  // namespace

std::string_view name(Tier tier) noexcept {
  constexpr std::string_view kNames[] = {"none", "shared", "memory", "disk"};
  return kNames[static_cast<std::size_t>(tier)];
}

ResultPointer error_result(int status, const std::string& code, const std::string& message,
                           const std::string& hint) {
  remote::ErrorAnswer error;
  error.code = code;
  error.message = message;
  error.hint = hint;
  return std::make_shared<const Result>(Result{status, remote::write_error(error), nullptr});
}

CompilePool::CompilePool(const Settings& settings, Metrics& metrics, ArtifactStore& artifacts)
    : settings_(settings),
      metrics_(metrics),
      artifacts_(artifacts),
      disk_(cache::process_store()),
      results_(settings.cache_bytes) {
  const unsigned count =
      settings.workers != 0 ? settings.workers : std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < count; ++i) slots_.emplace_back([this] { run_slot(); });
}

CompilePool::~CompilePool() {
  {
    const base::LockGuard lock(mutex_);
    stopping_ = true;
  }
  work_there_.notify_all();
  for (std::thread& slot : slots_) slot.join();
}

std::shared_ptr<const PoolFacts> CompilePool::facts() const {
  const base::LockGuard lock(mutex_);
  return facts_;
}

void CompilePool::reload() {
  const base::LockGuard lock(mutex_);
  ++generation_;
}

CompilePool::Answer CompilePool::compile(const Request& request) {
  FlightPointer flight;
  Tier tier = Tier::shared;
  {
    const base::LockGuard lock(mutex_);
    // Results are stored before their flights end, so one of the two is found.
    const auto found = flights_.find(request.key);
    if (found != flights_.end()) {
      flight = found->second;
    } else if (ResultPointer stored = results_.find(request.key)) {
      ++metrics_.hits_memory;
      offer(*stored);
      return {std::move(stored), Tier::memory};
    } else {
      tier = Tier::none;
      flight = std::make_shared<Flight>();
      flight->key = request.key;
      flight->facts = request.facts;
      flight->request_id = request.request_id;
      flights_.emplace(request.key, flight);
    }
    ++flight->waiting;
  }
  if (tier == Tier::none) begin(flight, request, tier);
  return wait(flight, request, tier);
}

void CompilePool::begin(const FlightPointer& flight, const Request& request, Tier& tier) {
  if (disk_ != nullptr)
    if (const auto bytes = disk_->get(cache::EntryKind::served_answer, request.key))
      if (ResultPointer kept = from_bytes(*bytes)) {
        ++metrics_.hits_disk;
        tier = Tier::disk;
        offer(*kept);
        return publish(flight, std::move(kept), true);
      }
  flight->text = request.text();
  {
    const base::LockGuard lock(mutex_);
    if (queue_.size() < settings_.max_queue) {
      queue_.push_back(flight);
      metrics_.queue_length = queue_.size();
      work_there_.notify_one();
      return;
    }
  }
  publish(
      flight,
      error_result(429, "busy", fmt::format("{} compiles wait already, and no more may", settings_.max_queue),
                   "try again after the time in Retry-After, or try another server"),
      false);
}

void CompilePool::offer(const Result& result) {
  if (!result.machine_code) return;
  const auto bytes = std::as_bytes(std::span(*result.machine_code));
  artifacts_.put(base::sha256(bytes), result.machine_code, bytes.size());
}

CompilePool::Answer CompilePool::wait(const FlightPointer& flight, const Request& request, Tier tier) {
  for (;;) {
    {
      const base::LockGuard lock(mutex_);
      if (flight->done.wait_for(mutex_, kLook, [&] { return flight->result != nullptr; })) {
        --flight->waiting;
        if (tier == Tier::shared) ++metrics_.hits_shared;
        return {flight->result, tier};
      }
    }
    if (!request.gone()) continue;
    const base::LockGuard lock(mutex_);
    leave(flight);
    return {nullptr, tier};
  }
}

void CompilePool::leave(const FlightPointer& flight) {
  if (--flight->waiting != 0 || flight->result != nullptr) return;
  flight->abandoned = true;
  // A request for the same that comes now begins anew.
  if (const auto found = flights_.find(flight->key); found != flights_.end() && found->second == flight)
    flights_.erase(found);
  if (flight->running) return;
  std::erase(queue_, flight);
  metrics_.queue_length = queue_.size();
  ++metrics_.compiles_abandoned;
}

CompilePool::FlightPointer CompilePool::next() {
  const base::LockGuard lock(mutex_);
  work_there_.wait(mutex_, [this]() QUERN_REQUIRES(mutex_) { return stopping_ || !queue_.empty(); });
  if (stopping_) return nullptr;
  FlightPointer flight = queue_.front();
  queue_.pop_front();
  metrics_.queue_length = queue_.size();
  flight->running = true;
  return flight;
}

bool CompilePool::is_wanted(const Flight& flight) {
  const base::LockGuard lock(mutex_);
  return !flight.abandoned && !stopping_;
}

void CompilePool::publish(const FlightPointer& flight, ResultPointer result, bool keep) {
  const std::uint64_t size = result->body.size() + (result->machine_code ? result->machine_code->size() : 0);
  if (keep) results_.put(flight->key, result, size);
  const base::LockGuard lock(mutex_);
  flight->result = std::move(result);
  if (const auto found = flights_.find(flight->key); found != flights_.end() && found->second == flight)
    flights_.erase(found);
  flight->done.notify_all();
}

void CompilePool::run_slot() {
  std::optional<WorkerProcess> worker;
  std::uint64_t generation = 0;
  for (;;) {
    std::uint64_t wanted = 0;
    {
      const base::LockGuard lock(mutex_);
      if (stopping_) break;
      wanted = generation_;
    }
    if (worker && (generation != wanted || worker->request_count() >= settings_.worker_requests)) {
      worker.reset();
      --metrics_.workers;
    }
    if (!worker) {
      worker = start_worker();
      generation = wanted;
      if (!worker) continue;
    }
    const FlightPointer flight = next();
    if (!flight) break;
    ++metrics_.workers_busy;
    const bool good = work(*worker, flight);
    --metrics_.workers_busy;
    if (good) continue;
    worker.reset();
    --metrics_.workers;
    ++metrics_.worker_restarts;
  }
}

std::optional<WorkerProcess> CompilePool::start_worker() {
  Expected<WorkerProcess> started = WorkerProcess::start(settings_.worker_memory_bytes, kStartPatience);
  if (started) {
    note_worker(*started);
    ++metrics_.workers;
    return *std::move(started);
  }
  log_event(Level::error, "worker-not-started", {{"reason", started.errors().front().message}});
  const base::LockGuard lock(mutex_);
  work_there_.wait_for(mutex_, kAfterFailedStart, [this]() QUERN_REQUIRES(mutex_) { return stopping_; });
  return std::nullopt;
}

void CompilePool::note_worker(const WorkerProcess& worker) {
  const WorkerHello& hello = worker.hello();
  const std::string stamp = nvrtc_stamp(hello.nvrtc_path);
  const base::LockGuard one(identifying_);
  const std::shared_ptr<const PoolFacts> known = facts();
  if (known && known->stamp == stamp && known->problem == hello.problem) return;
  PoolFacts facts{identify_toolkit(hello), stamp, hello.problem, hello.sandbox};
  log_event(hello.problem.empty() ? Level::info : Level::error, "toolkit",
            {{"nvrtc", hello.nvrtc_path},
             {"version", hello.nvrtc_version},
             {"headers", hello.headers_version},
             {"digest", facts.toolkit.digest},
             {"problem", hello.problem}});
  const bool whole = hello.sandbox.missing.empty();
  log_event(whole ? Level::info : Level::warning, "sandbox",
            {{"landlock", std::int64_t{hello.sandbox.landlock}},
             {"seccomp", std::int64_t{hello.sandbox.seccomp}},
             {"limits", std::int64_t{hello.sandbox.limits}},
             {"missing", hello.sandbox.missing}});
  const base::LockGuard lock(mutex_);
  facts_ = std::make_shared<const PoolFacts>(std::move(facts));
}

bool CompilePool::work(WorkerProcess& worker, const FlightPointer& flight) {
  if (nvrtc_stamp(worker.hello().nvrtc_path) != flight->facts->stamp) {
    publish(flight, error_result(503, "starting", "the toolkit of this server has changed"), false);
    return false;
  }
  const std::int64_t begin = base::now_ns();
  const auto deadline = begin + static_cast<std::int64_t>(settings_.compile_timeout_s * 1e9);
  ++metrics_.nvrtc_runs;
  Frame answer;
  const Receive got = worker.ask(
      {0, flight->text, ""}, [&] { return base::now_ns() < deadline && is_wanted(*flight); }, answer);
  metrics_.compile_seconds.add(static_cast<double>(base::now_ns() - begin) * 1e-9);
  if (got != Receive::frame) {
    publish(flight, failed(worker, got, *flight, base::now_ns() >= deadline), false);
    return false;
  }
  ResultPointer result = finished(answer, *flight);
  const bool trusted = result->status != 500;
  publish(flight, result, trusted);
  if (trusted && disk_ != nullptr)
    disk_->put(cache::EntryKind::served_answer, flight->key, to_bytes(*result));
  return trusted;
}

ResultPointer CompilePool::finished(const Frame& frame, const Flight& flight) {
  if (frame.status == kErrorFrame) {
    remote::ErrorAnswer error = remote::read_error(frame.text);
    if (!error.code.empty()) {
      ++metrics_.compiles_error;
      error.code = "compile";
      error.request_id.clear();
      return std::make_shared<const Result>(Result{422, remote::write_error(error), nullptr});
    }
  } else if (Expected<remote::CompileAnswer> answer = remote::read_answer(frame.text)) {
    answer->key = flight.key.hex();
    answer->toolkit = flight.facts->toolkit;
    if (!frame.bytes.empty()) {
      const base::Digest digest = base::sha256(std::as_bytes(std::span(frame.bytes)));
      answer->machine_code_digest = digest.hex();
      answer->machine_code_bytes = frame.bytes.size();
    }
    ++metrics_.compiles_ok;
    Result result{200, remote::write_answer(*answer), nullptr};
    if (!frame.bytes.empty()) result.machine_code = std::make_shared<const std::string>(frame.bytes);
    offer(result);
    return std::make_shared<const Result>(std::move(result));
  }
  ++metrics_.compiles_crashed;
  log_event(Level::error, "worker-nonsense", {{"request_id", flight.request_id}});
  return error_result(500, "worker-failed", "the compiler's answer cannot be read");
}

ResultPointer CompilePool::failed(WorkerProcess& worker, Receive got, const Flight& flight, bool late) {
  const std::string how = worker.end();
  if (got == Receive::stopped && !late) {
    ++metrics_.compiles_abandoned;
    log_event(Level::info, "compile-abandoned", {{"request_id", flight.request_id}});
    return error_result(503, "draining", "the compile was ended: nobody waited for it");
  }
  if (got == Receive::stopped) {
    ++metrics_.compiles_timeout;
    log_event(Level::warning, "compile-timeout", {{"request_id", flight.request_id}});
    return error_result(
        504, "compile-timeout",
        fmt::format("the compile took longer than {} s, this server's limit", settings_.compile_timeout_s),
        "make the source smaller, or ask the operator for a higher --compile-timeout");
  }
  ++metrics_.compiles_crashed;
  log_event(Level::error, "worker-failed", {{"request_id", flight.request_id}, {"ended", how}});
  return error_result(500, "worker-failed", fmt::format("the compiler ended without an answer: {}", how),
                      fmt::format("it may have exhausted its {} MiB of memory, or crashed on this source",
                                  settings_.worker_memory_bytes >> 20));
}

}  // namespace quern::serve
