// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include "audit.hpp"
#include "host_memory.hpp"
#include "session/state.hpp"

namespace quern::failure {

AuditedDevice& AuditedDevice::get() {
  static auto* const instance = new AuditedDevice;
  return *instance;
}

Session AuditedDevice::open_session() const {
  return session::SessionAccess::open(runtime::open_device(driver, 0));
}

AuditedDevice::AuditedDevice() : plugin(*driver::load_cpu_plugin()) {
  table = new driver::FailingTable(audited(plugin.table));
  table->observe(in_driver);
  runtime::Driver made;
  made.api = table->table();
  made.plugin = plugin.plugin;
  driver = runtime::initialise(std::move(made));
}

ForeignStream::ForeignStream(const Session& session) {
  const driver::DriverTable& api = AuditedDevice::get().plugin.table;
  in_driver(true);
  CUstream stream = nullptr;
  CUcontext popped = nullptr;
  api.cuCtxPushCurrent_v2(static_cast<CUcontext>(session.native_context()));
  api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  api.cuCtxPopCurrent_v2(&popped);
  in_driver(false);
  view_ = session.external_stream(stream);
}

ForeignStream::~ForeignStream() {
  in_driver(true);
  AuditedDevice::get().plugin.table.cuStreamDestroy_v2(static_cast<CUstream>(view_.handle()));
  in_driver(false);
}

}  // namespace quern::failure
