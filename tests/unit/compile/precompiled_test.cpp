// SPDX-License-Identifier: Apache-2.0
#include "compile/precompiled.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "compile/compiler.hpp"
#include "toolkit.hpp"

using namespace quern;
using namespace quern::compile;

namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "quern-pch-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  std::string path;
};

abi::KernelRequest request_of(std::string text, std::string name = "k.cu") {
  abi::KernelRequest request;
  request.source = {abi::Language::cuda, std::move(text), std::move(name)};
  return request;
}

CompilerOptions options_with(std::shared_ptr<PrecompiledHeaders> headers) {
  CompilerOptions options;
  options.store = nullptr;
  options.images = make_image_cache(0);
  options.precompiled = std::move(headers);
  return options;
}

/// A compiler that may use the precompiled header of `includes`, and one without precompiled headers.
struct Pair {
  explicit Pair(const std::vector<std::string>& includes) {
    const auto key =
        fast.precompile(request_of(include_lines(includes), "<precompiled>"), folder.path + "/header");
    REQUIRE_MESSAGE(bool(key), (key ? "" : key.errors().front().message));
    headers->add(*key, folder.path + "/header");
  }
  /// Compiles with both. Returns true if the precompiled header was used. The results must be equal.
  bool used(const abi::KernelRequest& request) {
    const std::uint64_t before = headers->use_count();
    auto with = fast.compile(request);
    const bool is_used = headers->use_count() != before;
    auto without = plain.compile(request);
    REQUIRE_EQ(bool(with), bool(without));
    if (with) {
      CHECK_EQ((*with)->ptx, (*without)->ptx);
      CHECK_EQ(texts((*with)->log), texts((*without)->log));
      REQUIRE_EQ((*with)->entries.size(), (*without)->entries.size());
      for (std::size_t i = 0; i < (*with)->entries.size(); ++i)
        CHECK_EQ((*with)->entries[i].lowered_name, (*without)->entries[i].lowered_name);
    } else {
      CHECK_EQ(texts(with.errors()), texts(without.errors()));
    }
    return is_used;
  }
  static std::string texts(const Diagnostics& diagnostics) {
    std::string text;
    for (const Diagnostic& each : diagnostics) text += to_string(each);
    return text;
  }

  Folder folder;
  std::shared_ptr<PrecompiledHeaders> headers = std::make_shared<PrecompiledHeaders>();
  Compiler fast{options_with(headers)};
  Compiler plain{options_with(nullptr)};
};

const std::string kKernel = "extern \"C\" __global__ void k(__half* p) { p[threadIdx.x] = 1.f; }\n";

}  // namespace

TEST_CASE("the leading includes are lines of their own before everything else") {
  using List = std::vector<std::string>;
  CHECK_EQ(
      leading_includes("// c\n\n# include <a.h> // d\n/* e\n */ #include <b/c.h>\nint x;\n#include <d>\n"),
      List{"a.h", "b/c.h"});
  CHECK_EQ(leading_includes("#define X\n#include <a.h>\n"), List{});
  CHECK_EQ(leading_includes("#include \"a.h\"\n"), List{});
  CHECK_EQ(leading_includes("#include <a.h> x\n"), List{});
  CHECK_EQ(leading_includes("#include X\n"), List{});
  CHECK_EQ(leading_includes("#include_next <a.h>\n"), List{});
  CHECK_EQ(leading_includes("int x;\n#include <a.h>\n"), List{});
  CHECK_EQ(include_lines(List{"a.h", "b"}), "#include <a.h>\n#include <b>\n");
}

TEST_CASE("that which stands for the most includes is found, and none made with other options") {
  PrecompiledHeaders headers;
  const std::vector<std::string> options{"-x"}, one{"a"}, two{"a", "b"}, other{"b", "a"};
  headers.add(precompiled_key(options, one), "one");
  headers.add(precompiled_key(options, two), "two");
  CHECK_EQ(headers.find(options, std::vector<std::string>{"a", "b", "c"}), "two");
  CHECK_EQ(headers.find(options, std::vector<std::string>{"a", "c"}), "one");
  CHECK_EQ(headers.find(options, other), "");
  CHECK_EQ(headers.find({"-y"}, two), "");
  CHECK_EQ(headers.find({}, two), "");
}

TEST_CASE("a precompiled header changes no result") {
  if (!quern::test::have_nvrtc() || !quern::test::have_toolkit_headers()) return;
  Pair pair({"cuda_fp16.h"});
  const std::string include = "#include <cuda_fp16.h>\n";
  CHECK(pair.used(request_of(include + kKernel)));
  CHECK(pair.used(request_of("// x\n\n#  include <cuda_fp16.h>  // y\n#include <cuda_bf16.h>\n" + kKernel)));
  CHECK(pair.used(request_of(include + "#define X 1\n" + kKernel, "folder/name.cu")));
  CHECK(pair.used(request_of(include + kKernel, "/home/of/none/name.cu")));
  CHECK(pair.used(request_of(include + "__global__ void k(int* p) { int unused; p[0] = __LINE__; }\n")));
  abi::KernelRequest named =
      request_of(include + "template <class T> __global__ void k(T* p) { p[0] = T(1); }\n");
  named.name_expressions = {"k<__half>", "k<float>"};
  CHECK(pair.used(named));
  CHECK_FALSE(pair.used(request_of(include + "__global__ void k(int* p) { p[0] = q; }\n")));
  CHECK_FALSE(pair.used(request_of(kKernel)));
}

TEST_CASE("what could mean something else is compiled without") {
  if (!quern::test::have_nvrtc() || !quern::test::have_toolkit_headers()) return;
  Pair pair({"cuda_fp16.h"});
  const std::string include = "#include <cuda_fp16.h>\n";
  CHECK_FALSE(pair.used(request_of("#define __CUDA_NO_HALF_OPERATORS__\n" + include + kKernel)));
  abi::KernelRequest request = request_of(include + kKernel);
  request.options = {"-DX=1"};
  CHECK_FALSE(pair.used(request));
  request.options = {"--use_fast_math"};
  CHECK_FALSE(pair.used(request));
  request.options.clear();
  request.target.compute = 80;
  CHECK_FALSE(pair.used(request));
  abi::KernelRequest own = request_of(include + "#include \"own.h\"\n" + kKernel);
  own.headers = {{"own.h", "#define OWN\n"}};
  CHECK_FALSE(pair.used(own));
}

TEST_CASE("a file that is none is passed over") {
  if (!quern::test::have_nvrtc() || !quern::test::have_toolkit_headers()) return;
  Pair pair({"cuda_fp16.h"});
  const std::string source = "#include <cuda_fp16.h>\n" + kKernel;
  std::ofstream(pair.folder.path + "/header") << "no precompiled header";
  CHECK_FALSE(pair.used(request_of(source)));
  fs::remove(pair.folder.path + "/header");
  CHECK_FALSE(pair.used(request_of(source)));
}

TEST_CASE("a header with errors or warnings is not precompiled") {
  if (!quern::test::have_nvrtc() || !quern::test::have_toolkit_headers()) return;
  const Folder folder;
  Compiler compiler(options_with(nullptr));
  for (const char* text : {"#include <there/is/none.h>\n", "#warning x\n"}) {
    const auto key = compiler.precompile(request_of(text), folder.path + "/header");
    REQUIRE_FALSE(bool(key));
    CHECK_EQ(key.errors().front().code, "precompiled-header");
  }
}
