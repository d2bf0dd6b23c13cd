// SPDX-License-Identifier: Apache-2.0
#include "quern/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "quern/error.hpp"
#include "runtime/buffer.hpp"
#include "runtime/stream.hpp"
#include "session/backends.hpp"
#include "session/gate.hpp"
#include "session/state.hpp"

namespace quern {
namespace session {
namespace {

// The PTX that every device gets is the same, so that results on the CPU device and on a GPU can be compared.
constexpr std::uint32_t kVirtualArchitecture = 89;

abi::Target target_of(const Device& device) {
  abi::Target target;
  target.compute = kVirtualArchitecture;
  if (device.kind() == DeviceKind::cpu) return target;
  const auto capability = static_cast<std::uint32_t>(device.compute_capability());
  target.compute = std::min(kVirtualArchitecture, capability);
  target.sm = capability;
  target.driver_version = static_cast<std::uint32_t>(device.driver_version());
  return target;
}

Expected<std::shared_ptr<SessionState>> open_session(const SessionOptions& options) {
  Expected<DeviceChoice> choice = read_device_choice(options.device);
  if (!choice) return std::move(choice).errors();
  Expected<Device> device = choose_device(*choice);
  if (!device) return std::move(device).errors();
  return std::make_shared<SessionState>(*std::move(device), std::make_shared<compile::Compiler>());
}

Expected<Module> load(const std::shared_ptr<SessionState>& session, Expected<abi::KernelSource> source,
                      const LoadOptions& options) {
  if (!source) return std::move(source).errors();
  Expected<std::shared_ptr<ModuleState>> module =
      load_module(session, make_request(*std::move(source), options, session->target()));
  if (!module) return std::move(module).errors();
  return Module(*std::move(module));
}

abi::KernelSource text_source(abi::Language language, std::string_view text) {
  const char* const suffix = language == abi::Language::ptx      ? ".ptx"
                             : language == abi::Language::python ? ".py"
                                                                 : ".cu";
  return {language, std::string(text), std::string("<string>") + suffix};
}

}  // namespace

SessionState::SessionState(Device device, std::shared_ptr<compile::Compiler> compiler)
    : device_(std::move(device)),
      context_(runtime::Context::create(device_)),
      compiler_(std::move(compiler)),
      target_(target_of(device_)) {}

}  // namespace session

using session::value_or_throw;

Session::Session(const SessionOptions& options) : state_(value_or_throw(session::open_session(options))) {}

Expected<Session> Session::try_open(const SessionOptions& options) {
  Expected<std::shared_ptr<session::SessionState>> state = session::open_session(options);
  if (!state) return std::move(state).errors();
  return Session(*std::move(state));
}

const Device& Session::device() const noexcept { return state_->device(); }
std::size_t Session::free_memory_bytes() const { return state_->context()->free_memory_bytes(); }

Expected<Module> Session::try_load_cuda(std::string_view source, const LoadOptions& options) const {
  return session::load(state_, session::text_source(abi::Language::cuda, source), options);
}
Expected<Module> Session::try_load_ptx(std::string_view ptx, const LoadOptions& options) const {
  return session::load(state_, session::text_source(abi::Language::ptx, ptx), options);
}
Expected<Module> Session::try_load_python(std::string_view source, const LoadOptions& options) const {
  return session::load(state_, session::text_source(abi::Language::python, source), options);
}
Module Session::load_python(std::string_view source, const LoadOptions& options) const {
  return value_or_throw(try_load_python(source, options));
}
Expected<Module> Session::try_load_file(const std::filesystem::path& path, const LoadOptions& options) const {
  return session::load(state_, session::read_kernel_file(path), options);
}
Module Session::load_cuda(std::string_view source, const LoadOptions& options) const {
  return value_or_throw(try_load_cuda(source, options));
}
Module Session::load_ptx(std::string_view ptx, const LoadOptions& options) const {
  return value_or_throw(try_load_ptx(ptx, options));
}
Module Session::load_file(const std::filesystem::path& path, const LoadOptions& options) const {
  return value_or_throw(try_load_file(path, options));
}

DeviceBuffer Session::allocate(std::size_t bytes) const {
  return runtime::make_buffer(state_->context(), bytes);
}

DeviceNDArray Session::device_array(std::span<const std::int64_t> shape, ElementType element) const {
  const std::size_t bytes = runtime::array_bytes(shape, element.size_bytes);
  return DeviceNDArray(allocate(bytes), element, std::vector<std::int64_t>(shape.begin(), shape.end()));
}

DeviceBuffer Session::allocate_elements(std::size_t count, std::size_t element_bytes) const {
  if (count > static_cast<std::size_t>(INT64_MAX))
    throw Error(
        ErrorCode::usage,
        fmt::format("an array of {} elements is larger than an address space; use a smaller one", count));
  const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
  return allocate(runtime::array_bytes(shape, element_bytes));
}

DeviceNDArray Session::to_device(std::span<const std::byte> bytes, std::span<const std::int64_t> shape,
                                 ElementType element) const {
  const DeviceNDArray array = device_array(shape, element);
  array.copy_bytes_from_host(bytes);
  return array;
}

Stream Session::stream() const { return runtime::make_stream(state_->context()); }
StreamView Session::default_stream() const noexcept { return StreamView(state_->context().get(), nullptr); }
Event Session::event() const { return runtime::make_event(state_->context()); }
void Session::synchronize() const { state_->context()->synchronize(); }

DeferredCleanup Session::defer_cleanup() const {
  return DeferredCleanup(std::make_shared<session::DeferState>(state_->context()));
}
std::size_t Session::pending_release_count() const { return state_->context()->queue().pending_count(); }

std::vector<Device> devices() {
  std::vector<Device> found;
  for (auto open : {&session::open_cuda_driver, &session::open_cpu_driver}) {
    const Expected<std::shared_ptr<const runtime::Driver>> driver = open();
    if (!driver) continue;
    for (int ordinal = 0; ordinal < runtime::device_count(**driver); ++ordinal)
      found.push_back(runtime::open_device(*driver, ordinal));
  }
  return found;
}

std::string_view version() noexcept { return QUERN_VERSION; }

}  // namespace quern
