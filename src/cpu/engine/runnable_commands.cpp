// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/runnable_commands.hpp"

#include <pthread.h>

namespace quern::cpu::engine {
namespace {

GroupId group_of(const Command& command) noexcept {
  if (command.launch() != nullptr) return GroupId::compute;
  if (std::holds_alternative<HostJob>(command.job)) return GroupId::host;
  const bool looks =
      std::holds_alternative<ValueJob>(command.job) || std::holds_alternative<PeerJob>(command.job);
  return looks ? GroupId::value : GroupId::copy;
}

GroupId group_of(WorkKind kind) noexcept {
  switch (kind) {
    case WorkKind::transfer:
      return GroupId::copy;
    case WorkKind::value:
      return GroupId::value;
    case WorkKind::host_function:
      return GroupId::host;
    case WorkKind::launch:
    case WorkKind::waiting_launch:
      break;
  }
  return GroupId::compute;
}

bool is_of(WorkKind kind, const Command& command) noexcept {
  const LaunchJob* launch = command.launch();
  return launch == nullptr || launch->waits() == (kind == WorkKind::waiting_launch);
}

std::size_t index_of(GroupId id) noexcept { return static_cast<std::size_t>(id); }

/// True if the launch takes so long that it pays to wake another thread immediately.
bool is_big(const LaunchJob& launch) noexcept { return !launch.alone && launch.own.block_count > 1; }

}  // namespace

RunnableCommands::RunnableCommands(const std::vector<std::unique_ptr<Worker>>& workers, ThreadGroups& groups,
                                   Progress& progress)
    : workers_(workers), groups_(groups), progress_(progress) {
  for (const auto& worker : workers_) free_workers_.push_back(worker.get());
  std::reverse(free_workers_.begin(), free_workers_.end());  // worker 0 is taken first
}

void RunnableCommands::add(Command& command) {
  command.state = Command::State::ready;
  const GroupId id = group_of(command);
  const auto is_before = [](const Command* one, const Command* other) {
    return one->stream->priority() < other->stream->priority();
  };
  std::vector<Command*>& ready = ready_[index_of(id)];
  if (id == GroupId::value)
    ready.push_back(&command);
  else
    ready.insert(std::upper_bound(ready.begin(), ready.end(), &command, is_before), &command);
  progress_.note();
  groups_.note_work(id, command.launch() != nullptr ? is_big(*command.launch())
                                                    : id == GroupId::host || id == GroupId::value);
}

void RunnableCommands::add_again(Command& command) {
  command.state = Command::State::ready;
  ready_[index_of(GroupId::value)].push_back(&command);
}

void RunnableCommands::remove(const Command& launch) {
  std::erase(ready_[index_of(GroupId::compute)], &launch);
}

bool RunnableCommands::can_take(const Command& command) const {
  const LaunchJob* launch = command.launch();
  if (launch == nullptr) return command.state == Command::State::ready;
  if (launch->alone && command.participants > 0) return false;
  return command.state != Command::State::queued && !launch->exhausted() && !free_workers_.empty() &&
         (!launch->cooperative || cooperative_ == nullptr || cooperative_ == &command);
}

bool RunnableCommands::has_work(GroupId id) const {
  for (const Command* command : ready_[index_of(id)])
    if (can_take(*command)) return true;
  return false;
}

std::optional<Task> RunnableCommands::try_take(Command& command) {
  if (!can_take(command)) return std::nullopt;
  command.state = Command::State::running;
  const LaunchJob* launch = command.launch();
  if (launch == nullptr) {
    std::erase(ready_[index_of(group_of(command))], &command);
    Task task;
    task.command = &command;
    return task;
  }
  if (launch->cooperative) cooperative_ = &command;
  Worker* worker = free_workers_.back();
  free_workers_.pop_back();
  worker->thread = ::pthread_self();
  worker->command = &command;
  ++command.participants;
  Task task;
  task.command = &command;
  task.worker = worker;
  return task;
}

template <class Accepts>
std::optional<Task> RunnableCommands::take_first(GroupId id, const Accepts& accepts) {
  for (Command* command : ready_[index_of(id)]) {
    std::optional<Task> task = accepts(*command) ? try_take(*command) : std::nullopt;
    if (!task) continue;
    if (has_work(id)) groups_.call_for_help(id, true);
    return task;
  }
  return std::nullopt;
}

std::optional<Task> RunnableCommands::take(GroupId id) {
  return take_first(id, [](const Command&) { return true; });
}

bool RunnableCommands::has_stranded_work(GroupId id) const {
  return groups_.lacks_threads(id) && has_work(id);
}

bool RunnableCommands::has_stranded_work() const {
  for (std::size_t group = 0; group < kGroupCount; ++group)
    if (has_stranded_work(static_cast<GroupId>(group))) return true;
  return false;
}

void RunnableCommands::call_for_help() {
  for (std::size_t group = 0; group < kGroupCount; ++group)
    if (const auto id = static_cast<GroupId>(group); has_stranded_work(id)) groups_.call_for_help(id, true);
}

std::size_t RunnableCommands::ready_count(WorkKind kind) const noexcept {
  return ready_[index_of(group_of(kind))].size();
}

std::optional<Task> RunnableCommands::take_stranded(WorkKind kind) {
  const GroupId id = group_of(kind);
  if (!groups_.lacks_threads(id)) return std::nullopt;
  return take_first(id, [kind](const Command& command) { return is_of(kind, command); });
}

std::optional<Task> RunnableCommands::take(Command& head) {
  const GroupId id = group_of(head);
  // Only the group's own thread runs these, if there is one.
  if ((id == GroupId::host || id == GroupId::value) && !groups_.lacks_threads(id)) return std::nullopt;
  std::optional<Task> task = try_take(head);
  if (task && task->worker != nullptr && is_big(*head.launch()))
    groups_.call_for_help(GroupId::compute, true);
  return task;
}

void RunnableCommands::give_back(Worker& worker) {
  free_workers_.push_back(&worker);
  --worker.command->participants;
  worker.command = nullptr;
}

bool RunnableCommands::is_over(const Command& launch) {
  const bool exhausted = launch.launch()->exhausted();
  if (exhausted) remove(launch);
  if (has_work(GroupId::compute)) groups_.call_for_help(GroupId::compute, false);  // a worker is free again
  if (!exhausted || launch.participants > 0) return false;
  if (cooperative_ == &launch) {
    cooperative_ = nullptr;
    if (has_work(GroupId::compute)) groups_.call_for_help(GroupId::compute, true);
  }
  return true;
}

}  // namespace quern::cpu::engine
