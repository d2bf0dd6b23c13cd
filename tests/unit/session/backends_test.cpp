// SPDX-License-Identifier: Apache-2.0
#include "session/backends.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "quern/doctor.hpp"
#include "quern/session.hpp"
#include "quern/stage.hpp"
#include "session/gate.hpp"
#include "session/state.hpp"

using namespace quern;

namespace {

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
std::string errors(const auto& expected) { return expected ? std::string() : to_string(expected.errors()); }

/// Sets a variable for a scope.
struct Variable {
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  const char* name_;
};

}  // namespace

TEST_CASE("device names are read, and QUERN_DEVICE stands in where none is given") {
  unsetenv("QUERN_DEVICE");
  CHECK_FALSE(session::read_device_choice("")->kind);
  CHECK_FALSE(session::read_device_choice("auto")->kind);
  CHECK(session::read_device_choice("cpu")->kind == DeviceKind::cpu);
  CHECK(session::read_device_choice("cuda:3")->ordinal == 3);
  const Variable variable("QUERN_DEVICE", "cuda:2");
  CHECK(session::read_device_choice("")->ordinal == 2);
  CHECK(session::read_device_choice("cpu")->kind == DeviceKind::cpu);
}

TEST_CASE("what names no device says which names there are") {
  for (const char* name : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:1x", ":", "cuda:99999999999"}) {
    const auto choice = session::read_device_choice(name);
    CHECK_MESSAGE(!choice, name);
    CHECK(holds(errors(choice), "devices are auto, cpu, cuda and cuda:N"));
  }
  const Variable variable("QUERN_DEVICE", "rocm");
  CHECK(holds(errors(session::read_device_choice("")), "QUERN_DEVICE"));
}

TEST_CASE("a device that is not there says what was tried and what to do") {
  const Variable variable("QUERN_CPU_PLUGIN", "/nonexistent/libquern-cpu.so");
  const auto opened = Session::try_open({"cpu"});
  REQUIRE_FALSE(opened);
  CHECK(holds(errors(opened), "cannot open device 'cpu'"));
  CHECK(holds(errors(opened), "/nonexistent/libquern-cpu.so"));
  CHECK(holds(errors(opened), "hint: "));
  CHECK(session::error_code(opened.errors()) == ErrorCode::not_found);
}

TEST_CASE("a kernel file is known by its suffix") {
  CHECK(holds(errors(session::read_kernel_file("kernel.txt")),
              ".py (Kernel Python), .cu (CUDA C++) or .ptx (PTX)"));
  const auto missing = session::read_kernel_file("/nonexistent/kernel.cu");
  CHECK(holds(errors(missing), "/nonexistent/kernel.cu"));
  CHECK(session::error_code(missing.errors()) == ErrorCode::not_found);
}

TEST_CASE("stages have names, and the first one is the source itself") {
  CHECK(stage_named("asm") == Stage::assembly);
  CHECK(name(Stage::simt) == "simt");
  CHECK_FALSE(stage_named("sass"));
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "quern_stage_test.cu";
  std::ofstream(path) << "extern \"C\" __global__ void k() {}\n";
  CHECK(stage_text(path, Stage::cuda) == "extern \"C\" __global__ void k() {}\n");
  std::filesystem::remove(path);
}

TEST_CASE("the doctor never throws, and lists every variable") {
  const Variable variable("QUERN_DEVICE", "cpu");
  const DoctorReport report = doctor();
  CHECK(report.findings.size() == 6);
  bool found = false;
  for (const EnvironmentVariable& row : report.environment)
    found = found || (row.name == "QUERN_DEVICE" && row.value == "cpu");
  CHECK(found);
  for (const Finding& finding : report.findings)
    if (finding.state == Finding::State::missing) CHECK_FALSE(finding.hint.empty());
}
