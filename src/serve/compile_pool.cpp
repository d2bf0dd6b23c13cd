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
constexpr auto kStartTimeout = std::chrono::seconds(60);
constexpr auto kAfterFailedStart = std::chrono::seconds(2);
constexpr std::uint64_t kCrashesOfNursery = 16;
constexpr std::int64_t kBetweenLooks_ns = 2'000'000'000;  // at the files of the toolkit

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

/// The source may be right: with more memory, or another time, it could be compiled.
bool is_failure_of_compiler(const Diagnostic& diagnostic) {
  return diagnostic.severity == Severity::error && diagnostic.code == "nvrtc-failed";
}

}  // namespace

std::string_view name(Tier tier) noexcept {
  constexpr std::string_view kNames[] = {"none", "shared", "memory", "disk", "store"};
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
  if (settings.precompiled_bytes != 0) precompiling_ = std::thread([this] { run_precompiling(); });
}

CompilePool::~CompilePool() {
  {
    const base::LockGuard lock(mutex_);
    stopping_ = true;
  }
  work_there_.notify_all();
  precompiled_there_.notify_all();
  for (std::thread& slot : slots_) slot.join();
  if (precompiling_.joinable()) precompiling_.join();
  fleet_.reset();  // its threads use the rest
}

std::shared_ptr<const PoolFacts> CompilePool::facts() const {
  const base::LockGuard lock(mutex_);
  return facts_;
}

void CompilePool::reload() {
  const base::LockGuard lock(mutex_);
  ++generation_;
  work_there_.notify_all();  // idle slots renew their workers now
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
      flight->source_name = request.source_name;
      flight->language = request.language;
      flights_.emplace(request.key, flight);
    }
    ++flight->waiting;
  }
  if (tier == Tier::none) begin(flight, request);
  return wait(flight, request, tier);
}

void CompilePool::begin(const FlightPointer& flight, const Request& request) {
  if (disk_ != nullptr)
    if (const auto bytes = disk_->get(cache::EntryKind::served_answer, request.key))
      if (take(flight, *bytes, Tier::disk)) return;
  flight->text = request.text();
  if (!fleet_) return enqueue(flight);
  std::string bytes;
  switch (fleet_->begin(flight->key, flight->ticket, bytes)) {
    case Fleet::Step::found:
      return take_from_store(flight, bytes);
    case Fleet::Step::compile:
      return enqueue(flight);
    case Fleet::Step::wait:
      break;
  }
  fleet_->wait(flight->ticket,
               {[this, flight](const std::string& value) { take_from_store(flight, value); },
                [this, flight] { enqueue(flight); }, [this, flight] { return is_wanted(*flight); }});
}

bool CompilePool::take(const FlightPointer& flight, std::string_view bytes, Tier tier) {
  ResultPointer kept = from_bytes(bytes);
  if (!kept) return false;
  ++(tier == Tier::disk ? metrics_.hits_disk : metrics_.hits_store);
  flight->tier = tier;
  offer(*kept);
  publish(flight, std::move(kept), true);
  return true;
}

void CompilePool::take_from_store(const FlightPointer& flight, std::string_view bytes) {
  if (!take(flight, bytes, Tier::store)) return enqueue(flight);
  if (disk_ != nullptr) disk_->put(cache::EntryKind::served_answer, flight->key, std::string(bytes));
}

void CompilePool::enqueue(const FlightPointer& flight) {
  {
    const base::LockGuard lock(mutex_);
    if (flight->abandoned) {
      if (flight->ticket) fleet_->finish(flight->ticket);
      return;
    }
    // A flight that a worker is free for does not wait, even if the worker's thread has yet to wake up.
    if (queue_.size() + metrics_.workers_busy < settings_.max_queue + slots_.size()) {
      queue_.push_back(flight);
      metrics_.queue_length = queue_.size();
      work_there_.notify_one();
      return;
    }
  }
  conclude(
      flight,
      error_result(429, "busy", fmt::format("{} compiles wait already, and no more may", settings_.max_queue),
                   "try again after the time in Retry-After, or try another server"),
      false);
}

void CompilePool::conclude(const FlightPointer& flight, const ResultPointer& result, bool trusted) {
  publish(flight, result, trusted);
  const bool stores = trusted && (disk_ != nullptr || flight->ticket);
  std::string bytes = stores ? to_bytes(*result) : std::string();
  if (stores && disk_ != nullptr) disk_->put(cache::EntryKind::served_answer, flight->key, bytes);
  if (flight->ticket) fleet_->finish(flight->ticket, std::move(bytes));
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
        return {flight->result, tier == Tier::none ? flight->tier : tier};
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
  if (std::erase(queue_, flight) != 0 && flight->ticket) fleet_->finish(flight->ticket);
  metrics_.queue_length = queue_.size();
  ++metrics_.compiles_abandoned;
}

CompilePool::FlightPointer CompilePool::next(std::uint64_t generation) {
  const base::LockGuard lock(mutex_);
  work_there_.wait(mutex_, [&]() QUERN_REQUIRES(mutex_) {
    return stopping_ || !queue_.empty() || generation_ != generation;
  });
  if (stopping_ || queue_.empty()) return nullptr;
  FlightPointer flight = queue_.front();
  queue_.pop_front();
  metrics_.queue_length = queue_.size();
  ++metrics_.workers_busy;
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
  Slot slot;
  while (!is_stopping()) {
    const std::uint64_t generation = current_generation();
    if (!renew_worker(slot) && !slot.worker) {
      const base::LockGuard lock(mutex_);
      work_there_.wait_for(mutex_, kAfterFailedStart, [this]() QUERN_REQUIRES(mutex_) { return stopping_; });
      continue;
    }
    const FlightPointer flight = next(generation);
    if (!flight) continue;
    // Much may have happened while nothing was to be done.
    if (!renew_worker(slot) && !slot.worker) {
      conclude(flight, error_result(503, "starting", "no worker could be started"), false);
      --metrics_.workers_busy;
      continue;
    }
    const bool good = work(slot, flight);
    --metrics_.workers_busy;
    if (good) continue;
    end_worker(slot);
    ++metrics_.worker_restarts;
  }
  end_worker(slot);
}

std::uint64_t CompilePool::current_generation() const {
  const base::LockGuard lock(mutex_);
  return generation_;
}

bool CompilePool::is_stopping() const {
  const base::LockGuard lock(mutex_);
  return stopping_;
}

void CompilePool::end_worker(Slot& slot) {
  if (slot.worker) --metrics_.workers;
  slot.worker.reset();
}

bool CompilePool::renew_worker(Slot& slot) {
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
  slot = Slot{*std::move(forked), current, header_count};
  return true;
}

std::shared_ptr<NurseryProcess> CompilePool::nursery() {
  std::uint64_t generation = 0;
  {
    const base::LockGuard lock(mutex_);
    generation = generation_;
  }
  const base::LockGuard one(nursing_);
  const bool is_current = nursery_ && nursery_generation_ == generation && !has_toolkit_changed();
  return is_current || start_nursery(generation) ? nursery_ : nullptr;
}

bool CompilePool::has_toolkit_changed() {
  const std::int64_t now_ns = base::now_ns();
  if (now_ns - looked_ns_ < kBetweenLooks_ns) return false;
  looked_ns_ = now_ns;
  return toolkit_stamp(nursery_->hello()) != nursery_->toolkit().stamp;
}

bool CompilePool::start_nursery(std::uint64_t generation) {
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

void CompilePool::drop_nursery(const std::shared_ptr<NurseryProcess>& nursery) {
  const base::LockGuard one(nursing_);
  if (nursery_ == nursery) nursery_.reset();
}

void CompilePool::note_worker(const NurseryProcess& nursery, const WorkerHello& hello) {
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

bool CompilePool::work(Slot& slot, const FlightPointer& flight) {
  WorkerProcess& worker = *slot.worker;
  if (slot.nursery->toolkit().identity.digest != flight->facts->toolkit.digest) {
    conclude(flight, error_result(503, "starting", "the toolkit of this server has changed"), false);
    return true;
  }
  const std::int64_t begin = base::now_ns();
  const auto deadline = begin + static_cast<std::int64_t>(settings_.compile_timeout_s * 1e9);
  ++metrics_.nvrtc_runs;
  Frame answer;
  const Receive got = worker.ask(
      {0, flight->text, ""}, [&] { return base::now_ns() < deadline && is_wanted(*flight); }, answer);
  const double seconds = static_cast<double>(base::now_ns() - begin) * 1e-9;
  metrics_.compile_seconds.add(seconds);
  ResultPointer result = got == Receive::frame ? finished(answer, *flight)
                                               : failed(worker, got, *flight, base::now_ns() >= deadline);
  metrics_.slowest.add({seconds * 1e3, result->status, unix_time_s(), flight->source_name, flight->language,
                        flight->request_id});
  if (got != Receive::frame) {
    conclude(flight, result, false);
    return false;
  }
  note_speed(answer, *flight, seconds);
  const bool trusted = result->status != 500;
  conclude(flight, result, trusted);
  return trusted;
}

void CompilePool::note_speed(const Frame& answer, const Flight& flight, double seconds) {
  if (answer.status == kFastImageFrame) ++metrics_.precompiled_uses;
  if (answer.status != kImageFrame || settings_.precompiled_bytes == 0) return;
  const Expected<remote::CompileMessage> message = remote::read_compile_message(flight.text);
  if (!message || !message->headers.empty()) return;
  precompiled_.note_compile(message->request, seconds);
  precompiled_there_.notify_all();
}

void CompilePool::run_precompiling() {
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

void CompilePool::precompile(const abi::KernelRequest& lines) {
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

ResultPointer CompilePool::finished(const Frame& frame, const Flight& flight) {
  if (frame.status == kErrorFrame) {
    remote::ErrorAnswer error = remote::read_error(frame.text);
    if (std::ranges::any_of(error.diagnostics, is_failure_of_compiler)) {
      ++metrics_.compiles_crashed;
      log_event(Level::error, "worker-failed", {{"request_id", flight.request_id}, {"ended", error.message}});
      return error_result(
          500, "worker-failed", "the compiler failed: " + error.diagnostics.front().message,
          fmt::format("a worker may use {} MiB of memory", settings_.worker_memory_bytes >> 20));
    }
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
  // All workers of a nursery have one layout of memory, of which each crash may tell something.
  if (++metrics_.compiles_crashed % kCrashesOfNursery == 0) reload();
  log_event(Level::error, "worker-failed", {{"request_id", flight.request_id}, {"ended", how}});
  return error_result(500, "worker-failed", fmt::format("the compiler ended without an answer: {}", how),
                      fmt::format("it may have exhausted its {} MiB of memory, or crashed on this source",
                                  settings_.worker_memory_bytes >> 20));
}

}  // namespace quern::serve
