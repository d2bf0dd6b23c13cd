// SPDX-License-Identifier: Apache-2.0
// Modules with a driver that records calls. NVRTC is that of this machine.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "quern/error.hpp"
#include "session/gate.hpp"
#include "session/state.hpp"
#include "tests/unit/compile/toolkit.hpp"
#include "tests/unit/support/fake_driver.hpp"

using namespace quern;
using quern::test::FakeDriver;

namespace {

constexpr const char* kSource = R"(
extern "C" __global__ void first(int n, float* x) { if (n > 0) x[0] = n; }
namespace ns { __global__ void second(int n) {} }
template <class T> __global__ void scale(T* x, T a) { *x *= a; }
)";

struct Setup {
  FakeDriver fake;
  std::vector<std::string> loaded;  // the first bytes of every image that the driver received
  std::shared_ptr<session::SessionState> state =
      std::make_shared<session::SessionState>(fake.device(), fake.context());

  Setup() {
    fake.on_load = [this](const std::string& image) {
      loaded.push_back(image.substr(0, 4));
      return CUDA_SUCCESS;
    };
  }
  Expected<Module> load(const std::string& text, const LoadOptions& options = {}) {
    abi::KernelSource source{abi::Language::cuda, text, "kernel.cu"};
    auto module = session::load_module(
        state, session::make_request(std::move(source), options, state->target(), nullptr));
    if (!module) return module.errors();
    return Module(*module);
  }
};

std::string errors(const auto& expected) { return expected ? std::string() : to_string(expected.errors()); }
bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("on a GPU, which cannot end a launch, cancelling and time limits are refused") {
  if (!test::have_nvrtc()) return;
  Setup setup;
  setup.fake.parameter_bytes = {4};
  const Module module = setup.load(kSource).value();
  const Kernel second = module.kernel("ns::second");
  CHECK_NOTHROW(second({.grid = 1, .block = 1})(1));
  const auto refused = [](const auto& action) {
    try {
      action();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::unsupported);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(holds(refused([&] { second({.grid = 1, .block = 1, .timeout = std::chrono::seconds(1)})(1); }),
              "CUDA has none on"));
  const StreamView stream(setup.state->context().get(), nullptr);
  CHECK(holds(refused([&] { stream.cancel(); }), "CUDA has no call that ends a launch on a GPU"));
}

TEST_CASE("a GPU is given machine code first, and PTX where it does not take it") {
  if (!test::have_nvrtc()) return;
  Setup setup;
  REQUIRE(setup.load(kSource));
  CHECK(setup.loaded == std::vector<std::string>{"\x7f"
                                                 "ELF"});
  setup.loaded.clear();
  setup.fake.on_load = [&](const std::string& image) {
    setup.loaded.push_back(image.substr(0, 4));
    return image.starts_with("\x7f") ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_SUCCESS;
  };
  REQUIRE(setup.load(kSource));
  CHECK(setup.loaded.size() == 2);
  CHECK(setup.loaded.back()[0] == '/');  // PTX begins with a comment
}

TEST_CASE("PTX that the device refuses comes back as a diagnostic, other failures are thrown") {
  if (!test::have_nvrtc()) return;
  Setup setup;
  setup.fake.on_load = [](const std::string&) { return CUDA_ERROR_INVALID_PTX; };
  const std::string refused = errors(setup.load(kSource));
  CHECK(holds(refused, "fake device refused the PTX of kernel.cu"));
  CHECK(holds(refused, "hint: "));
  setup.fake.on_load = [](const std::string&) { return CUDA_ERROR_OUT_OF_MEMORY; };
  CHECK_THROWS_AS(static_cast<void>(setup.load(kSource)), OutOfMemory);
}

TEST_CASE("kernels are found by the author's names, and each is made once") {
  if (!test::have_nvrtc()) return;
  Setup setup;
  setup.fake.parameter_bytes = {4, 8};
  const Expected<Module> module = setup.load(kSource);
  REQUIRE(module);
  CHECK(module->kernel("first").signature() == "first(int n, float* x)");
  CHECK(module->kernel(" first ").name() == "first");
  setup.fake.parameter_bytes = {4};
  CHECK(module->kernel("ns::second").signature() == "ns::second(int n)");
  CHECK(module->kernel("ns::second").info().cuda_source == kSource);
}

TEST_CASE("an instance of a template is compiled when it is asked for") {
  if (!test::have_nvrtc()) return;
  Setup setup;
  const Expected<Module> module = setup.load(kSource);
  REQUIRE(module);
  setup.fake.parameter_bytes = {8, 8};
  CHECK(module->kernel("scale<double>").signature() == "scale<double>(double* x, double a)");
  const std::size_t loads = setup.loaded.size();
  CHECK(module->kernel("scale<double>").name() == "scale<double>");
  CHECK(setup.loaded.size() == loads);
  CHECK(holds(errors(module->try_kernel("scale<Missing>")), "Missing"));
}

TEST_CASE("a kernel that is no template has no instances, and other spellings of a kernel are that kernel") {
  if (!test::have_nvrtc()) return;
  Setup setup;
  const Module module = setup.load(kSource).value();
  for (const char* name :
       {"first<int>", "first<0>", "first<a<b>", "ns::second<float>", " ns::second < int > "}) {
    CAPTURE(name);
    const Expected<Kernel> kernel = module.try_kernel(name);
    REQUIRE_FALSE(kernel);
    CHECK(session::error_code(kernel.errors()) == ErrorCode::not_found);
    CHECK(holds(errors(kernel), "first, ns::second"));
  }
  CHECK(holds(errors(module.try_kernel("first<int>")), "first is not a template"));
  LoadOptions options;
  options.name_expressions = {"first<int>"};
  CHECK(holds(errors(setup.load(kSource, options)), "is not a template"));
  setup.fake.parameter_bytes = {4};
  const std::size_t loads = setup.loaded.size();
  CHECK(module.kernel("::ns::second").name() == "ns::second");
  CHECK(setup.loaded.size() == loads);  // the module's own kernel, with its variables
}

TEST_CASE("an unknown kernel lists those there are") {
  if (!test::have_nvrtc()) return;
  Setup setup;
  const Expected<Module> module = setup.load(kSource);
  REQUIRE(module);
  CHECK(module->kernel_names() == std::vector<std::string>{"first", "ns::second"});
  const std::string text = errors(module->try_kernel("frist"));
  CHECK(holds(text, "kernel.cu has no kernel 'frist'"));
  CHECK(holds(text, "hint: it has first, ns::second"));
  CHECK(holds(errors(module->try_kernel("scale")), "scale<float>"));
  try {
    static_cast<void>(module->kernel());
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    CHECK(holds(error.what(), "kernel.cu has 2 kernels"));
  }
}

TEST_CASE("options reach the compiler") {
  if (!test::have_nvrtc()) return;
  Setup setup;
  const std::string text =
      "#ifndef N\n#error N is missing\n#endif\nextern \"C\" __global__ void k(int* x) { *x = N; }\n";
  CHECK(holds(errors(setup.load(text)), "kernel.cu:2"));
  LoadOptions options;
  options.defines = {"N=41"};
  const Expected<Module> module = setup.load(text, options);
  REQUIRE(module);
  CHECK(holds(module->ptx(), "41"));
}

TEST_CASE("modules keep what they need alive, and dropped ones are unloaded") {
  if (!test::have_nvrtc()) return;
  FakeDriver* fake = nullptr;
  Setup setup;
  fake = &setup.fake;
  {
    Expected<Module> module = setup.load(kSource);
    REQUIRE(module);
    setup.state.reset();
    fake->parameter_bytes = {4, 8};
    CHECK(module->kernel("first").info().registers == 24);
  }
  CHECK(fake->released == std::vector<std::string>{"module"});
  CHECK(fake->retained == 0);
}

TEST_CASE("PTX is loaded as it is") {
  if (!test::have_nvrtc()) return;
  Setup setup;
  const Expected<Module> cuda = setup.load(kSource);
  REQUIRE(cuda);
  abi::KernelSource source{abi::Language::ptx, cuda->ptx(), "kernel.ptx"};
  auto module = session::load_module(
      setup.state, session::make_request(std::move(source), {}, setup.state->target(), nullptr));
  REQUIRE(module);
  setup.fake.parameter_bytes = {4, 8};
  CHECK(Module(*module).kernel("first").signature() == "first(.u32, .u64)");
  CHECK(Module(*module).kernel("first").info().cuda_source.empty());
}

TEST_CASE("the gate gives each diagnostic its kind of exception") {
  const auto code = [](const char* word) {
    try {
      session::throw_diagnostics({session::make_diagnostic(word, "what", "do")});
    } catch (const CompileError&) {
      return ErrorCode::compile;
    } catch (const Error& error) {
      CHECK(std::string(error.what()) == "what\nhint: do");
      return error.code();
    }
  };
  CHECK(code("io") == ErrorCode::io);
  CHECK(code("unknown-kernel") == ErrorCode::not_found);
  CHECK(code("device-missing") == ErrorCode::not_found);
  CHECK(code("nvrtc-failed") == ErrorCode::compile);
  CHECK(code("no-such-code") == ErrorCode::internal);  // base/diagnostic_codes.def lists the codes
}
