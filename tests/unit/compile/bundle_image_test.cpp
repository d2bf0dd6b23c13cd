// SPDX-License-Identifier: Apache-2.0
// Compiled modules from bundles.
#include "compile/bundle_image.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "../support/scratch.hpp"
#include "compile/image_format.hpp"
#include "toolkit.hpp"

using namespace quern;
using test::Scratch;
namespace fs = std::filesystem;

namespace {

const char* const kKernel = "extern \"C\" __global__ void twice(int n, float* x) { if (n) x[0] *= 2; }\n";

abi::KernelRequest request_of(const std::string& text, const std::string& file = "some/dir/k.cu") {
  abi::KernelRequest request = test::cuda(text);
  request.source.file_name = file;
  return request;
}

compile::CompilerOptions plain_options() {
  compile::CompilerOptions options;
  options.store = nullptr;
  options.bundles = {};
  return options;
}

/// A bundle of requests, made by the NVRTC here.
struct Made {
  Scratch scratch;
  std::vector<cache::BundleEntry> entries;
  std::unique_ptr<cache::Bundle> bundle;
  std::vector<cache::Bundle*> list;

  explicit Made(const std::vector<abi::KernelRequest>& requests) {
    compile::Compiler compiler(plain_options());
    entries.push_back(compile::toolkit_entry(*compiler.toolkit_contents()));
    for (const abi::KernelRequest& request : requests) {
      auto image = compiler.compile_for_bundle(request, "k.cu");
      REQUIRE_MESSAGE(image, (image ? "" : to_string(image.errors())));
      entries.push_back(std::move(image->entry));
    }
    write();
  }

  void write() {
    const std::string path = (scratch.path / "b").string();
    std::ofstream(path, std::ios::binary) << *cache::write_bundle(entries, nullptr);
    fs::permissions(path, fs::perms(0600));
    bundle = std::make_unique<cache::Bundle>(path, nullptr);
    list = {bundle.get()};
  }

  struct Outcome {
    Expected<compile::Compiler::Image> image;
    CompileStats stats;
  };
  Outcome compile(const abi::KernelRequest& request, bool has_nvrtc, bool any = false) const {
    compile::CompilerOptions options = plain_options();
    options.bundles = list;
    options.any_bundle_toolkit = any;
    if (!has_nvrtc) options.around.emplace();
    compile::Compiler compiler(options);
    auto image = compiler.compile(request);
    return {std::move(image), compiler.stats()};
  }
  bool hits(const abi::KernelRequest& request, bool has_nvrtc, bool any = false) const {
    return compile(request, has_nvrtc, any).stats.bundle_hits == 1;
  }
};

}  // namespace

TEST_SUITE_BEGIN("nvrtc");

TEST_CASE("a machine without NVRTC takes what a bundle has, under any file name") {
  if (!test::have_nvrtc()) return;
  const Made made({request_of(kKernel)});
  for (const char* file : {"some/dir/k.cu", "/elsewhere/other.cu"}) {
    const auto outcome = made.compile(request_of(kKernel, file), false);
    REQUIRE(outcome.image);
    CHECK(outcome.stats.bundle_hits == 1);
    CHECK(outcome.stats.nvrtc_runs == 0);
    CHECK((*outcome.image)->ptx.find(".file\t1 \"k.cu\"") != std::string::npos);
    CHECK((*outcome.image)->entries.front().name == "twice");
    CHECK((*outcome.image)->compile_ms == 0);
  }
  CHECK_FALSE(made.compile(request_of(std::string(kKernel) + " "), false).image);
}

TEST_CASE("what bundles hold is what NVRTC makes, but for names") {
  if (!test::have_nvrtc()) return;
  const Made made({request_of(kKernel)});
  compile::Compiler compiler(plain_options());
  const auto here = compiler.compile(request_of(kKernel, "k.cu"));
  REQUIRE(here);
  CHECK((*made.compile(request_of(kKernel), false).image)->ptx == (*here)->ptx);
}

TEST_CASE("options, macros, targets and given names make other requests") {
  if (!test::have_nvrtc()) return;
  const Made made({request_of(kKernel)});
  CHECK(made.hits(request_of(kKernel), true));
  abi::KernelRequest other = request_of(kKernel);
  other.options = {"-DX=1"};
  CHECK_FALSE(made.hits(other, true));
  other = request_of(kKernel);
  other.target.compute = 80;
  CHECK_FALSE(made.hits(other, true));
  other = request_of(kKernel);
  other.name_expressions = {"twice"};
  CHECK_FALSE(made.hits(other, true));
}

TEST_CASE("a session on a GPU takes PTX, fitted to its driver, where there is no machine code for it") {
  if (!test::have_nvrtc()) return;
  abi::KernelRequest machine = request_of(kKernel);
  machine.target.sm = 90;
  const Made made({request_of(kKernel), machine});
  const auto nineties = made.compile(machine, false);
  REQUIRE(nineties.image);
  CHECK_FALSE((*nineties.image)->machine_code.empty());
  abi::KernelRequest later = machine;
  later.target.sm = 100;
  later.target.driver_version = 12000;
  const auto hundreds = made.compile(later, false);
  REQUIRE(hundreds.image);
  CHECK((*hundreds.image)->machine_code.empty());
  CHECK((*hundreds.image)->ptx.find("\n.version 8.0\n") != std::string::npos);
}

TEST_CASE("the author's headers count by their contents, wherever they lie") {
  if (!test::have_nvrtc()) return;
  const Scratch scratch;
  const std::string text = "#include \"n.h\"\n#include <m.h>\n" + std::string(kKernel);
  const auto request_in = [&](const std::string& folder) {
    abi::KernelRequest request = request_of(text, (scratch.path / folder / "k.cu").string());
    request.options = {"-I" + (scratch.path / folder / "inc").string()};
    return request;
  };
  for (const char* folder : {"one", "two"}) {
    scratch.write(std::string(folder) + "/n.h", "#define N 1\n");
    scratch.write(std::string(folder) + "/inc/m.h", "#define M 2\n");
  }
  const Made made({request_in("one")});
  CHECK(made.hits(request_in("two"), false));
  CHECK(made.hits(request_in("two"), true));
  scratch.write("two/inc/m.h", "#define M 3\n");
  CHECK_FALSE(made.hits(request_in("two"), true));
}

TEST_CASE("a bundle of another toolkit is used without NVRTC, and elsewhere only if asked for") {
  if (!test::have_nvrtc()) return;
  Made made({request_of(kKernel)});
  const compile::ToolkitContents other{"12.9 build-id:0123", "12090 4567"};
  const auto wanted = compile::bundle_request(request_of(kKernel));
  REQUIRE(wanted);
  made.entries[0] = compile::toolkit_entry(other);
  made.entries[1].key = compile::bundle_key(*wanted, other, 0);
  made.write();
  CHECK(made.hits(request_of(kKernel), false));
  const auto here = made.compile(request_of(kKernel), true);
  CHECK(here.stats.bundle_hits == 0);
  CHECK(here.stats.nvrtc_runs == 1);
  CHECK(made.hits(request_of(kKernel), true, true));
}

TEST_CASE("the toolkit's headers count where a source may read them, and leave no path") {
  if (!test::have_nvrtc() || !test::have_toolkit_headers()) return;
  const abi::KernelRequest request =
      request_of("#include <cuda_fp16.h>\nextern \"C\" __global__ void k(__half* p, float f) { *p = f; }");
  Made made({request});
  CHECK(made.hits(request, false));
  CHECK(made.hits(request, true));
  compile::Compiler compiler(plain_options());
  for (const std::string& directory : compiler.toolkit().include_directories)
    CHECK(made.entries[1].content.find(directory) == std::string::npos);
  // The same NVRTC with other headers.
  compile::ToolkitContents other = *compile::toolkit_of(*made.bundle);
  other.headers += "0";
  made.entries[0] = compile::toolkit_entry(other);
  made.entries[1].key = compile::bundle_key(*compile::bundle_request(request), other, 0);
  made.write();
  CHECK_FALSE(made.hits(request, true));
  CHECK(made.hits(request, false));
}

TEST_CASE("Kernel Python is found by what is made of it") {
  if (!test::have_nvrtc()) return;
  abi::KernelRequest request;
  request.source = {abi::Language::python, "from numba import cuda\n@cuda.jit\ndef k(a):\n    a[0] += 1\n",
                    "/some/k.py"};
  request.signature = "(float32[::1],)";
  const Made made({request});
  request.source.file_name = "other.py";
  const auto outcome = made.compile(request, false);
  REQUIRE(outcome.image);
  CHECK(outcome.stats.bundle_hits == 1);
  CHECK((*outcome.image)->of_python);
  request.signature = "(float64[::1],)";
  CHECK_FALSE(made.compile(request, false).image);
}

TEST_CASE("requests that a bundle cannot hold are refused with the reason") {
  if (!test::have_nvrtc()) return;
  compile::Compiler compiler(plain_options());
  abi::KernelRequest debug = request_of(kKernel);
  debug.options = {"-G"};
  for (const abi::KernelRequest& request :
       {debug, request_of("#define H <x.h>\n#include H\n" + std::string(kKernel))}) {
    const auto refused = compiler.compile_for_bundle(request, "k.cu");
    REQUIRE_FALSE(refused);
    CHECK(refused.errors().front().code == "not-remote");
  }
}

TEST_CASE("a damaged image in a sound bundle is passed over") {
  if (!test::have_nvrtc()) return;
  Made made({request_of(kKernel)});
  made.entries[1].content.resize(made.entries[1].content.size() / 2);
  made.write();
  const auto outcome = made.compile(request_of(kKernel), true);
  REQUIRE(outcome.image);
  CHECK(outcome.stats.nvrtc_runs == 1);
}

TEST_SUITE_END();
