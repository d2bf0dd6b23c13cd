// SPDX-License-Identifier: Apache-2.0
#include "compile/key_memo.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "../support/scratch.hpp"

using namespace quern;
using namespace quern::compile;
using test::Scratch;
namespace fs = std::filesystem;

namespace {

/// A folder that was not changed for some time.
const std::string kOld = QUERN_SOURCE_ROOT "/kernels/basics";

struct Headers {
  Scratch scratch;
  IncludeSearch search;
  Headers() {
    scratch.write("toolkit/a.h", "");
    scratch.write("toolkit/sub/b.h", "");
    search.toolkit_directories = {(scratch.path / "toolkit").string()};
  }
  IncludeScan scan(const std::string& source, const std::string& folder = kOld) const {
    return scan_includes(source, folder + "/kernel.cu", search);
  }
};

}  // namespace

TEST_CASE("includes of the toolkit's headers alone depend on the source's folder alone") {
  Headers headers;
  const IncludeScan scan = headers.scan("#include <a.h>\n#include \"sub/b.h\"\n#include <absent.h>\n");
  CHECK(scan.toolkit);
  REQUIRE(scan.folder);
  CHECK(scan.folder->path == kOld);
  CHECK(is_unchanged({*scan.folder}));
}

TEST_CASE("a search that depends on more than the source's folder names no folder") {
  Headers headers;
  SUBCASE("a header of the author's") { CHECK_FALSE(headers.scan("#include \"saxpy.cu\"\n").folder); }
  SUBCASE("a name that leads upwards") { CHECK_FALSE(headers.scan("#include \"../x.h\"\n").folder); }
  SUBCASE("a name that could lead upwards") { CHECK_FALSE(headers.scan("#include \"./x.h\"\n").folder); }
  SUBCASE("an absolute name") { CHECK_FALSE(headers.scan("#include \"/x/y.h\"\n").folder); }
  SUBCASE("a name below a folder that is there") {
    CHECK_FALSE(headers.scan("#include \"basics/absent.h\"\n", QUERN_SOURCE_ROOT "/kernels").folder);
  }
  SUBCASE("a folder with the name of one of the toolkit's") {
    headers.scratch.write("toolkit/basics/c.h", "");
    CHECK_FALSE(headers.scan("#include <a.h>\n", QUERN_SOURCE_ROOT "/kernels").folder);
  }
  SUBCASE("-I") {
    headers.search.user_directories = {QUERN_SOURCE_ROOT "/kernels"};
    CHECK_FALSE(headers.scan("#include <a.h>\n").folder);
  }
  SUBCASE("a file that is included before the source") {
    headers.search.pre_includes = {"a.h"};
    CHECK_FALSE(headers.scan("#include <a.h>\n").folder);
  }
  SUBCASE("a folder that is being changed") {
    headers.scratch.write("own/x", "");
    CHECK_FALSE(headers.scan("#include <a.h>\n", (headers.scratch.path / "own").string()).folder);
  }
  SUBCASE("a directive that cannot be read") {
    CHECK_FALSE(headers.scan("#define F <a.h>\n#include F\n#include <a.h>\n").folder);
  }
}

TEST_CASE("a key with headers is right until the source's folder or the toolkit changes") {
  Headers headers;
  const fs::path link = headers.scratch.path / "own";
  fs::create_directory_symlink(kOld, link);
  abi::KernelRequest request;
  request.source = {abi::Language::cuda, "#include <a.h>\n", (link / "kernel.cu").string()};
  Toolkit toolkit;
  toolkit.header_tree = std::make_shared<HeaderTree>(headers.search.toolkit_directories, nullptr);
  CudaPlan plan;
  plan.request = &request;
  plan.toolkit = &toolkit;
  plan.includes = scan_includes(request.source.text, request.source.file_name, headers.search);
  base::Digest key;
  key.bytes.fill(7);
  KeyMemo memo;
  memo.keep(plan, key);
  REQUIRE(memo.find(request) == key);
  CHECK(memo.find(request) == key);
  SUBCASE("another folder stands under the name") {
    headers.scratch.write("other/a.h", "");
    fs::remove(link);
    fs::create_directory_symlink("other", link);
    CHECK_FALSE(memo.find(request));
  }
  SUBCASE("a header of the toolkit is another") {
    headers.scratch.write("toolkit/a.h", "int a;");
    toolkit.header_tree->digest(true);
    CHECK_FALSE(memo.find(request));
  }
  SUBCASE("the folder is gone") {
    fs::remove(link);
    CHECK_FALSE(memo.find(request));
  }
}
