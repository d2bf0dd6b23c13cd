// SPDX-License-Identifier: Apache-2.0
#include "driver/function_facts.hpp"

namespace quern::driver {

std::string_view to_string(DriverObject object) noexcept {
  switch (object) {
    case DriverObject::none:
      return "none";
    case DriverObject::memory:
      return "memory";
    case DriverObject::pooled:
      return "pooled";
    case DriverObject::pool:
      return "pool";
    case DriverObject::addresses:
      return "addresses";
    case DriverObject::backing:
      return "backing";
    case DriverObject::mapping:
      return "mapping";
    case DriverObject::imported:
      return "imported";
    case DriverObject::host:
      return "host";
    case DriverObject::registered:
      return "registered";
    case DriverObject::stream:
      return "stream";
    case DriverObject::event:
      return "event";
    case DriverObject::module:
      return "module";
    case DriverObject::link:
      return "link";
    case DriverObject::library:
      return "library";
    case DriverObject::context:
      return "context";
    case DriverObject::graph:
      return "graph";
    case DriverObject::graph_exec:
      return "executable graph";
    case DriverObject::user_object:
      return "user object";
    case DriverObject::primary:
      return "primary";
    case DriverObject::current:
      return "current";
  }
  return "none";
}

const FunctionFacts* find_function(std::string_view symbol) noexcept {
  for (const FunctionFacts& function : kFunctions)
    if (function.symbol == symbol) return &function;
  return nullptr;
}

VersionFound find_version(std::string_view name, int cuda_version) noexcept {
  VersionFound found;
  const FunctionFacts* exact = nullptr;
  for (const FunctionFacts& function : kSurface) {
    if (function.symbol == name) exact = &function;
    if (function.name != name) continue;
    found.name_known = true;
    const bool later = found.function == nullptr || function.since > found.function->since;
    if (function.since <= cuda_version && later) found.function = &function;
  }
  if (!found.name_known) found.function = exact;
  return found;
}

}  // namespace quern::driver
