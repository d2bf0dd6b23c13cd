// SPDX-License-Identifier: Apache-2.0
#include "serve/compile_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace quern::serve {
namespace {

constexpr auto kBetweenChecks = std::chrono::milliseconds(200);  // of whether a client still waits
constexpr auto kAfterFailedStart = std::chrono::seconds(2);

}  // namespace

CompilePool::CompilePool(const Settings& settings, Metrics& metrics, ArtifactStore& artifacts)
    : settings_(settings),
      metrics_(metrics),
      artifacts_(artifacts),
      disk_(cache::process_store()),
      results_(settings.cache_bytes),
      workers_(settings, metrics, disk_),
      runner_(settings, metrics, artifacts, workers_) {
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
  workers_.stop();
  for (std::thread& slot : slots_) slot.join();
  fleet_.reset();  // its threads use the rest
}

void CompilePool::reload() {
  workers_.reload();
  const base::LockGuard lock(mutex_);
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
      offer_machine_code(artifacts_, *stored);
      return {std::move(stored), Tier::memory};
    } else {
      tier = Tier::none;
      flight = std::make_shared<Flight>();
      flight->job.key = request.key;
      flight->job.facts = request.facts;
      flight->job.request_id = request.request_id;
      flight->job.source_name = request.source_name;
      flight->job.language = request.language;
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
  flight->job.text = request.text();
  if (!fleet_) return enqueue(flight);
  std::string bytes;
  switch (fleet_->begin(flight->job.key, flight->ticket, bytes)) {
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
  ResultPointer kept = result_from_bytes(bytes);
  if (!kept) return false;
  ++(tier == Tier::disk ? metrics_.hits_disk : metrics_.hits_store);
  flight->tier = tier;
  offer_machine_code(artifacts_, *kept);
  publish(flight, std::move(kept), true);
  return true;
}

void CompilePool::take_from_store(const FlightPointer& flight, std::string_view bytes) {
  if (!take(flight, bytes, Tier::store)) return enqueue(flight);
  if (disk_ != nullptr) disk_->put(cache::EntryKind::served_answer, flight->job.key, std::string(bytes));
}

void CompilePool::enqueue(const FlightPointer& flight) {
  {
    const base::LockGuard lock(mutex_);
    if (flight->abandoned) {
      if (flight->ticket) fleet_->finish(flight->ticket);
      return;
    }
    // A flight does not count as waiting if a worker is free for it, even if the worker's thread has yet to
    // wake up.
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
  if (stores && disk_ != nullptr) disk_->put(cache::EntryKind::served_answer, flight->job.key, bytes);
  if (flight->ticket) fleet_->finish(flight->ticket, std::move(bytes));
}

CompilePool::Answer CompilePool::wait(const FlightPointer& flight, const Request& request, Tier tier) {
  for (;;) {
    {
      const base::LockGuard lock(mutex_);
      if (flight->done.wait_for(mutex_, kBetweenChecks, [&] { return flight->result != nullptr; })) {
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
  // A later request for the same key starts a new compile.
  if (const auto found = flights_.find(flight->job.key); found != flights_.end() && found->second == flight)
    flights_.erase(found);
  if (flight->running) return;
  if (std::erase(queue_, flight) != 0 && flight->ticket) fleet_->finish(flight->ticket);
  metrics_.queue_length = queue_.size();
  ++metrics_.compiles_abandoned;
}

CompilePool::FlightPointer CompilePool::next(std::uint64_t generation) {
  const base::LockGuard lock(mutex_);
  work_there_.wait(mutex_, [&]() QUERN_REQUIRES(mutex_) {
    return stopping_ || !queue_.empty() || workers_.generation() != generation;
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
  if (keep) results_.put(flight->job.key, result, size);
  const base::LockGuard lock(mutex_);
  flight->result = std::move(result);
  if (const auto found = flights_.find(flight->job.key); found != flights_.end() && found->second == flight)
    flights_.erase(found);
  flight->done.notify_all();
}

void CompilePool::run_slot() {
  WorkerSlot slot;
  while (!is_stopping()) {
    const std::uint64_t generation = workers_.generation();
    if (!workers_.renew_worker(slot) && !slot.worker) {
      const base::LockGuard lock(mutex_);
      work_there_.wait_for(mutex_, kAfterFailedStart, [this]() QUERN_REQUIRES(mutex_) { return stopping_; });
      continue;
    }
    const FlightPointer flight = next(generation);
    if (!flight) continue;
    // The toolkit, the nursery or the worker may have changed while this thread waited.
    if (!workers_.renew_worker(slot) && !slot.worker) {
      conclude(flight, error_result(503, "starting", "no worker could be started"), false);
      --metrics_.workers_busy;
      continue;
    }
    const CompileOutcome outcome = runner_.run(slot, flight->job, [&] { return is_wanted(*flight); });
    conclude(flight, outcome.result, outcome.trusted);
    --metrics_.workers_busy;
    if (outcome.renew_all) reload();
    if (outcome.worker_usable) continue;
    workers_.end_worker(slot);
    ++metrics_.worker_restarts;
  }
  workers_.end_worker(slot);
}

bool CompilePool::is_stopping() const {
  const base::LockGuard lock(mutex_);
  return stopping_;
}

}  // namespace quern::serve
