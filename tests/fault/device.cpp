// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include "audit.hpp"
#include "host_memory.hpp"
#include "session/state.hpp"

namespace quern::fault {

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

}  // namespace quern::fault
