// SPDX-License-Identifier: Apache-2.0
#include "compile/own_headers.hpp"

#include <doctest/doctest.h>

#include <map>

#include "../support/scratch.hpp"

using namespace quern;
using namespace quern::compile;

namespace {

using Texts = std::map<std::string, std::string>;

abi::KernelRequest request_of(const std::string& file_name, const std::string& text,
                              std::vector<std::string> options = {}) {
  abi::KernelRequest request;
  request.source = {abi::Language::cuda, text, file_name};
  request.options = std::move(options);
  return request;
}

Texts headers_of(const abi::KernelRequest& request, const std::vector<std::string>& toolkit = {}) {
  const Expected<WholeRequest> whole = with_own_headers(request, toolkit);
  REQUIRE(whole);
  Texts texts;
  for (const abi::HeaderText& header : whole->request.headers)
    CHECK(texts.emplace(header.name, header.text).second);
  return texts;
}

std::string refusal_of(const abi::KernelRequest& request) {
  const Expected<WholeRequest> whole = with_own_headers(request, {});
  return whole ? "" : whole.errors().front().code;
}

}  // namespace

TEST_CASE("headers come under the names by which they are included") {
  const test::Scratch folder;
  folder.write("include/lib/a.h", "#include \"b.h\"\n#include \"../c.h\"\n");
  folder.write("include/lib/b.h", "b");
  folder.write("include/c.h", "c");
  folder.write("src/d.h", "#if __has_include(\"e.h\")\n#endif\n");
  folder.write("src/e.h", "e");
  const std::string source =
      "#include <lib/a.h>\n#include \"d.h\"\n#include \"../src/d.h\"\n#include <cuda_fp16.h>\n";
  const Texts texts = headers_of(request_of((folder.path / "src/k.cu").string(), source,
                                            {"-I", (folder.path / "include").string(), "-DX"}));
  const Texts wanted = {{"lib/a.h", "#include \"b.h\"\n#include \"../c.h\"\n"},
                        {"lib/b.h", "b"},
                        {"c.h", "c"},
                        {"d.h", "#if __has_include(\"e.h\")\n#endif\n"},
                        {"../src/d.h", "#if __has_include(\"e.h\")\n#endif\n"},
                        {"../src/e.h", "e"},
                        {"e.h", "e"}};
  CHECK(texts == wanted);
}

TEST_CASE("the first directory wins, and names in angle brackets are not looked for beside the source") {
  const test::Scratch folder;
  folder.write("one/a.h", "one");
  folder.write("two/a.h", "two");
  folder.write("src/a.h", "src");
  const std::string one = "-I" + (folder.path / "one").string(),
                    two = "--include-path=" + (folder.path / "two").string();
  const std::string file = (folder.path / "src/k.cu").string();
  CHECK(headers_of(request_of(file, "#include <a.h>\n", {two, one})) == Texts{{"a.h", "two"}});
  CHECK(headers_of(request_of(file, "#include \"a.h\"\n", {two, one})) == Texts{{"a.h", "src"}});
  CHECK(headers_of(request_of(file, "#include <a.h>\n")) == Texts{});
}

TEST_CASE("a source that a server would read otherwise is not sent") {
  const test::Scratch folder;
  folder.write("src/x.h", "");
  folder.write("src/i/d.h", "#if __has_include(\"x.h\")\n#endif\n");
  folder.write("src/once.h", "#pragma once\n");
  folder.write("src/named.h", "inline const char* f() { return __FILE__; }\n");
  std::filesystem::create_symlink(folder.path / "src/once.h", folder.path / "src/link.h");
  const auto refused = [&](const std::string& text) {
    return refusal_of(request_of((folder.path / "src/k.cu").string(), text)) == "not-remote";
  };
  CHECK_FALSE(refused("#include \"x.h\"\n"));
  CHECK_FALSE(refused("#include \"i/d.h\"\n"));
  CHECK(refused("#include \"x.h\"\n#include \"i/d.h\"\n"));  // i/x.h is not there
  CHECK(refused("#include \"x.h\"\n#if __has_include(<x.h>)\n#endif\n"));
  CHECK(refused("#include \"x.h\"\n#include \"./x.h\"\n"));
  CHECK_FALSE(refused("#include \"once.h\"\n"));
  CHECK(refused("#include \"once.h\"\n#include \"link.h\"\n"));
  CHECK(refused("#include \"named.h\"\n"));
  CHECK(refused("#define H __has_include\n#if H(\"x.h\")\n#endif\n"));
  CHECK(refused("%:include \"x.h\"\n"));
  CHECK_FALSE(refused("#inc\\\nlude \"x.h\"\n"));
}

TEST_CASE("options that name directories are removed, and others are kept") {
  const Expected<WholeRequest> whole = with_own_headers(
      request_of("k.cu", "",
                 {"-I", "/a", "-DX=1", "--include-path=/b", "-I/c", "--include-path", "/d", "-w"}),
      {});
  REQUIRE(whole);
  CHECK(whole->request.options == std::vector<std::string>{"-DX=1", "-w"});
}

TEST_CASE("the toolkit's headers and those that are texts already are left out") {
  const test::Scratch folder;
  folder.write("toolkit/include/t.h", "t");
  folder.write("g.h", "file");
  abi::KernelRequest request = request_of((folder.path / "k.cu").string(),
                                          "#include <t.h>\n#include \"g.h\"\n#include <quern/device.cuh>\n",
                                          {"-I" + (folder.path / "toolkit/include").string()});
  request.headers = {{"g.h", "text"}};
  CHECK(headers_of(request, {(folder.path / "toolkit").string()}) == Texts{{"g.h", "text"}});
}

TEST_CASE("what texts cannot stand for is not remote") {
  const test::Scratch folder;
  folder.write("a/x.h", "#include \"same.h\"\n");
  folder.write("a/same.h", "1");
  folder.write("b/same.h", "2");
  CHECK_EQ(refusal_of(request_of("k.cu", "#define F \"a.h\"\n#include F\n")), "not-remote");
  CHECK_EQ(refusal_of(request_of("k.cu", "#include_next <a.h>\n")), "not-remote");
  CHECK_EQ(refusal_of(request_of("k.cu", "", {"--pre-include=a.h"})), "not-remote");
  CHECK_EQ(refusal_of(request_of("k.cu", "", {"--pch"})), "not-remote");
  // <x.h> is a/x.h, whose "same.h" is a/same.h under the name "same.h", which is b's for the source.
  const std::string file = (folder.path / "b/k.cu").string();
  CHECK_EQ(refusal_of(request_of(file, "#include <x.h>\n#include \"same.h\"\n",
                                 {"-I" + (folder.path / "a").string()})),
           "not-remote");
  CHECK_EQ(refusal_of(request_of("k.cu", "// #include F\n#include \"missing.h\"\n")), "");
}

TEST_CASE("files are named as a compilation here would name them") {
  const std::map<std::string, std::string> files = {{"lib/a.h", "include/lib/a.h"}};
  abi::PtxImage image;
  image.ptx = ".version 8.0\n\t.file\t1 \"k.cu\"\n\t.file\t2 \"lib/a.h\"\n\t.file\t3 \"lib/a.hh\"\n";
  image.log.resize(1);
  image.log[0].span.file = "lib/a.h";
  image.log[0].notes = {{{"lib/a.h", 1, 1, 0}, "here"}};
  rename_files(image, files);
  CHECK_EQ(image.ptx,
           ".version 8.0\n\t.file\t1 \"k.cu\"\n\t.file\t2 \"include/lib/a.h\"\n\t.file\t3 \"lib/a.hh\"\n");
  CHECK_EQ(image.log[0].span.file, "include/lib/a.h");
  CHECK_EQ(image.log[0].notes[0].span.file, "include/lib/a.h");
}
