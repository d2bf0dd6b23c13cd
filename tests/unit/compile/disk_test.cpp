// SPDX-License-Identifier: Apache-2.0
// The compiler's disk tier.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>
#include <thread>

#include "../support/scratch.hpp"
#include "compile/source/device_headers.hpp"
#include "compile/source/file_states.hpp"
#include "compile/source/watched_file.hpp"
#include "compile/toolkit/header_tree.hpp"
#include "compile/toolkit/library_identity.hpp"
#include "toolkit.hpp"

using namespace quern;
using test::Scratch;
namespace fs = std::filesystem;

namespace {

cache::DiskStoreOptions in(const fs::path& directory) {
  cache::DiskStoreOptions options;
  options.directory = directory.string();
  return options;
}

/// A compiler as in a new process, except that NVRTC is open already.
compile::Compiler::Image compile_in(cache::DiskStore& store, const abi::KernelRequest& request,
                                    CompileStats* stats = nullptr) {
  compile::CompilerOptions options;
  options.store = &store;
  compile::Compiler fresh(options);
  const auto image = fresh.compile(request);
  if (stats != nullptr) *stats = fresh.stats();
  REQUIRE_MESSAGE(image, test::errors_of(image));
  return *image;
}

/// True if a new compiler gets the result from the disk.
bool is_kept(cache::DiskStore& store, const abi::KernelRequest& request) {
  CompileStats stats;
  compile_in(store, request, &stats);
  CHECK(stats.nvrtc_runs + stats.disk_hits == 1);
  return stats.disk_hits == 1;
}

/// The output of compile-once: names and values, and the errors under "text".
std::map<std::string, std::string> run(const std::string& environment, const fs::path& directory,
                                       const std::string& arguments) {
  const std::string command = "cd '" + directory.string() + "' && env QUERN_CACHE=1 " + environment + " " +
                              QUERN_COMPILE_ONCE + " " + arguments + " 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  ::pclose(pipe);
  std::map<std::string, std::string> values;
  std::istringstream words(text.substr(0, text.find('\n')));
  for (std::string word; words >> word;)
    values[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  values["text"] = text.substr(text.find('\n') + 1);
  REQUIRE_MESSAGE(values.contains("runs"), text);
  return values;
}

std::string at(const fs::path& cache) { return "QUERN_CACHE_DIR='" + cache.string() + "'"; }

}  // namespace

TEST_SUITE_BEGIN("nvrtc");

TEST_CASE("a later process gets names, parameters, warnings and PTX as if fresh, without NVRTC") {
  if (!test::have_nvrtc()) return;
  const Scratch scratch;
  scratch.write("k.cu",
                "template <class T> __global__ void f(const T* in, T by) {}\nextern \"C\" __global__ void "
                "k(int* p) { int unused; *p = 7; }\n");
  const auto first = run(at(scratch.path / "cache"), scratch.path, "k.cu");
  CHECK(first.at("runs") == "1");
  CHECK(first.at("loaded") == "1");
  const auto second = run(at(scratch.path / "cache"), scratch.path, "k.cu");
  CHECK(second.at("runs") == "0");
  CHECK(second.at("disk") == "1");
  CHECK(second.at("loaded") == "0");
  CHECK(second.at("ptx") == first.at("ptx"));
  CHECK(run("QUERN_CACHE=0 " + at(scratch.path / "cache"), scratch.path, "k.cu").at("runs") == "1");
}

TEST_CASE("an image from the disk is the one that was compiled") {
  if (!test::have_nvrtc()) return;
  const Scratch scratch;
  cache::DiskStore store(in(scratch.path));
  abi::KernelRequest request = test::cuda(
      "__constant__ float table[4];\n__device__ int gain;\n"
      "template <class T> __global__ void scale(T* x, const T* by, int n) { __shared__ T s[32]; int unused; "
      "x[0] = by[0]; }\n",
      {"scale<float>", "&gain"});
  const auto fresh = compile_in(store, request);
  CompileStats stats;
  const auto kept = compile_in(store, request, &stats);
  CHECK(stats.nvrtc_runs == 0);
  CHECK(fresh->compile_ms > 0);
  CHECK(kept->compile_ms == 0);
  CHECK(kept->ptx == fresh->ptx);
  REQUIRE(kept->entries.size() == 1);
  CHECK(kept->entries[0].name == "scale<float>");
  CHECK(kept->entries[0].parameters.size() == 3);
  CHECK(kept->entries[0].parameters[1].type == fresh->entries[0].parameters[1].type);
  CHECK(kept->entries[0].parameters[1].read_only);
  CHECK(kept->log.size() >= 1);
  CHECK(to_string(kept->log) == to_string(fresh->log));
  CHECK(kept->variables.size() == fresh->variables.size());
}

TEST_CASE("a failed compilation is remembered with its log") {
  if (!test::have_nvrtc()) return;
  const Scratch scratch;
  scratch.write("k.cu", "__global__ void k() { wrong; }\n");
  const auto first = run(at(scratch.path / "cache"), scratch.path, "k.cu");
  CHECK(first.at("errors") == "1");
  CHECK(first.at("text").find("k.cu:1:23: error: identifier \"wrong\" is undefined") != std::string::npos);
  const auto second = run(at(scratch.path / "cache"), scratch.path, "k.cu");
  CHECK(second.at("runs") == "0");
  CHECK(second.at("loaded") == "0");
  CHECK(second.at("text") == first.at("text"));
}

TEST_CASE("whatever NVRTC sees is in the key") {
  if (!test::have_nvrtc()) return;
  const Scratch scratch;
  cache::DiskStore store(in(scratch.path));
  const abi::KernelRequest request = test::cuda("extern \"C\" __global__ void k(int* p) { *p = 7; }");
  CHECK_FALSE(is_kept(store, request));
  CHECK(is_kept(store, request));
  abi::KernelRequest other = request;
  SUBCASE("the text") { other.source.text += " "; }
  SUBCASE("the file's name") { other.source.file_name = "other.cu"; }
  SUBCASE("an option") { other.options = {"-DX"}; }
  SUBCASE("two options that spell the same together") {
    other.options = {"-DX=1", "-DY"};
    CHECK_FALSE(is_kept(store, other));
    other.options = {"-DX=1 -DY"};
  }
  SUBCASE("a name expression") { other.name_expressions = {"k"}; }
  SUBCASE("the target") { other.target.compute = 90; }
  SUBCASE("the driver's version") { other.target.driver_version = 13000; }
  SUBCASE("a given header") { other.headers = {{"a.h", ""}}; }
  CHECK_FALSE(is_kept(store, other));
  CHECK(is_kept(store, other));
  CHECK(is_kept(store, request));
}

TEST_CASE("a changed, a new and a removed header are noticed, also where one shadows another") {
  if (!test::have_nvrtc()) return;
  const Scratch scratch;
  cache::DiskStore store(in(scratch.path / "cache"));
  scratch.write("late/a.h", "#define N 1\n");
  fs::create_directories(scratch.path / "early");
  abi::KernelRequest request = test::cuda(
      "#include <a.h>\n#if __has_include(<b.h>)\n#define M 10\n#else\n#define M 20\n#endif\n"
      "extern \"C\" __global__ void k(int* p) { *p = N + M; }");
  request.options = {"-I" + (scratch.path / "early").string(), "-I" + (scratch.path / "late").string()};
  const auto stores = [&](const std::string& value) {
    return compile_in(store, request)->ptx.find(", " + value + ";") != std::string::npos;
  };
  CHECK(stores("21"));
  CHECK(is_kept(store, request));
  scratch.write("late/a.h", "#define N 2\n");
  CHECK(stores("22"));
  scratch.write("early/a.h", "#define N 3\n");  // shadows the former
  CHECK(stores("23"));
  scratch.write("late/b.h", "");  // only __has_include checks for it
  CHECK(stores("13"));
  fs::remove(scratch.path / "early/a.h");
  CHECK(stores("12"));
  fs::remove(scratch.path / "late/b.h");
  CHECK(stores("22"));
  CHECK(is_kept(store, request));
}

TEST_CASE("two names of one file are known from two equal files, as #pragma once knows them") {
  if (!test::have_nvrtc()) return;
  const Scratch scratch;
  cache::DiskStore store(in(scratch.path / "cache"));
  const std::string header = "#pragma once\n#ifdef A\n#define B\n#endif\n#define A\n";
  scratch.write("h1.h", header);
  scratch.write("h2.h", header);
  abi::KernelRequest request = test::cuda(
      "#include <h1.h>\n#include <h2.h>\n#ifdef B\n#define V 2\n#else\n#define V 1\n#endif\n"
      "extern \"C\" __global__ void k(int* p) { *p = V; }");
  request.options = {"-I" + scratch.path.string()};
  const auto stores = [&](const std::string& value) {
    return compile_in(store, request)->ptx.find(", " + value + ";") != std::string::npos;
  };
  CHECK(stores("2"));
  fs::remove(scratch.path / "h2.h");
  fs::create_hard_link(scratch.path / "h1.h", scratch.path / "h2.h");
  CHECK(stores("1"));
  fs::remove(scratch.path / "h2.h");
  scratch.write("h2.h", header);
  CHECK(stores("2"));
}

TEST_CASE("a file that was replaced and put back leaves a trace") {
  const Scratch scratch;
  fs::create_directories(scratch.path / "one");
  fs::create_directories(scratch.path / "two");
  scratch.write("one/a.h", "");
  scratch.write("two/a.h", "");
  fs::create_directory_symlink(scratch.path / "one", scratch.path / "link");
  compile::IncludeScan scan;
  scan.files = {{(scratch.path / "link/a.h").string(), {}}};
  const compile::FileStates before(scan);
  CHECK(before == compile::FileStates(scan));
  fs::remove(scratch.path / "link");
  fs::create_directory_symlink(scratch.path / "two", scratch.path / "link");
  CHECK_FALSE(before == compile::FileStates(scan));
  fs::remove(scratch.path / "link");
  fs::create_directory_symlink(scratch.path / "one", scratch.path / "link");
  CHECK_FALSE(before == compile::FileStates(scan));
  const compile::FileStates again(scan);
  fs::rename(scratch.path / "one", scratch.path / "three");
  fs::rename(scratch.path / "three", scratch.path / "one");
  CHECK_FALSE(again == compile::FileStates(scan));
}

TEST_CASE("what NVRTC compiles without descriptors to spare is not kept") {
  if (!test::have_nvrtc()) return;
  const Scratch scratch;
  scratch.write("k.cu",
                "#if __has_include(\"a.h\")\n#include \"a.h\"\n#else\n#define V 9\n#endif\n"
                "extern \"C\" __global__ void k(int* p) { *p = V; }\n");
  scratch.write("a.h", "#define V 3\n");
  const std::string cache = at(scratch.path / "cache");
  const std::string few = "bash -c 'ulimit -n 14; exec \"$@\"' bash ";
  CHECK(run(cache + " " + few, scratch.path, "k.cu")["runs"] == "1");
  CHECK(run(cache, scratch.path, "k.cu")["runs"] == "1");
  CHECK(run(cache, scratch.path, "k.cu")["runs"] == "0");
}

TEST_CASE("what only a preprocessor can know is not kept") {
  if (!test::have_nvrtc()) return;
  const Scratch scratch;
  cache::DiskStore store(in(scratch.path / "cache"));
  const auto kept = [&](const std::string& text) {
    abi::KernelRequest request = test::cuda(text + "\nextern \"C\" __global__ void k() {}\n");
    compile_in(store, request);
    return is_kept(store, request);
  };
  CHECK(kept(""));
  CHECK(kept("#include <quern/device.cuh>"));
  CHECK_FALSE(kept("#define HEADER <quern/device.cuh>\n#include HEADER"));
  CHECK_FALSE(kept("#define HAS __has_include(HEADER)\n#define HEADER <x.h>\n#if HAS\n#endif"));
  CHECK_FALSE(kept("%:include <quern/device.cuh>"));
  CHECK_FALSE(kept("#/**/include <quern/device.cuh>"));
  CHECK(kept("#inc\\\nlude <quern/device.cuh>"));
  CHECK_FALSE(kept("%\\\n:include <quern/device.cuh>"));
  CHECK_FALSE(kept("#ifdef __has_include_next\n#if __has_include_next(<x.h>)\n#endif\n#endif"));
  CHECK(kept("#define HAS __has_include(<x.h>)\n#if HAS\n#endif\n# pragma once\n#\n#line 7\n#undef X"));
}

TEST_CASE("the toolkit's headers are known as a whole; a file with the name of one of them is in doubt") {
  if (!test::have_nvrtc() || !test::have_toolkit_headers()) return;
  const Scratch scratch;
  cache::DiskStore store(in(scratch.path / "cache"));
  abi::KernelRequest request =
      test::cuda("#include <cuda_fp16.h>\nextern \"C\" __global__ void k(__half* p) { *p = 7; }");
  request.options = {"-I" + (scratch.path / "inc").string()};
  fs::create_directories(scratch.path / "inc");
  CHECK_FALSE(is_kept(store, request));
  CHECK(is_kept(store, request));
  scratch.write("inc/vector_types.h", "#include_next <vector_types.h>\n");  // which cuda_fp16.h includes
  scratch.write("inc/unrelated.h", "");
  {
    compile::CompilerOptions options;
    options.store = &store;
    compile::Compiler fresh(options);
    static_cast<void>(fresh.compile(request));
    CHECK(fresh.stats().disk_hits == 0);
    static_cast<void>(fresh.compile(request));
    CHECK(fresh.stats().nvrtc_runs == 2);
  }
  fs::remove(scratch.path / "inc/vector_types.h");
  CHECK(is_kept(store, request));
}

TEST_CASE("the identity of the toolkit's headers is that of their contents") {
  const Scratch scratch;
  cache::DiskStore store(in(scratch.path / "cache"));
  const auto digest = [&] { return compile::HeaderTree({(scratch.path / "inc").string()}, &store).digest(); };
  scratch.write("inc/a.h", "one");
  scratch.write("inc/sub/b.h", "two");
  const auto first = digest();
  REQUIRE(first);
  fs::last_write_time(scratch.path / "inc/a.h", fs::file_time_type::clock::now() - std::chrono::hours(1));
  CHECK(digest() == first);
  scratch.write("inc/sub/b.h", "owt");
  CHECK(digest() != first);
  scratch.write("inc/sub/b.h", "two");
  CHECK(digest() == first);
  scratch.write("inc/c.h", "");
  CHECK(digest() != first);
}

TEST_CASE("the working directory matters where the output holds it, and nowhere else") {
  if (!test::have_nvrtc()) return;
  const Scratch scratch;
  const std::string text =
      "#include <cassert>\nextern \"C\" __global__ void k(const char** p) { assert(p != nullptr); p[0] = "
      "__FILE__; }\n";
  scratch.write("a/k.cu", text);
  scratch.write("b/k.cu", text);
  const auto in_directory = [&](const char* directory, const char* cache, const char* options) {
    return run(at(scratch.path / cache), scratch.path / directory, std::string("k.cu ") + options);
  };
  // Verifies this: compiled in each of the two, with separate caches, the PTX is the same.
  const auto first = in_directory("a", "cache-a", "");
  const auto second = in_directory("b", "cache-b", "");
  CHECK(second.at("runs") == "1");
  CHECK(second.at("ptx") == first.at("ptx"));
  CHECK(in_directory("b", "cache-a", "").at("disk") == "1");
  // The debug information of -G contains the directory.
  const auto debug = in_directory("a", "cache-a", "-G");
  CHECK(in_directory("b", "cache-a", "-G").at("runs") == "1");
  CHECK(in_directory("a", "cache-a", "-G").at("ptx") == debug.at("ptx"));
}

TEST_CASE("NVRTC is known by its content, wherever it lies") {
  if (!test::have_nvrtc()) return;
  const std::string path = fs::canonical(test::compiler().toolkit().nvrtc_path).string();
  const Scratch scratch;
  scratch.write("k.cu", "extern \"C\" __global__ void k(int* p) { *p = 7; }\n");
  const auto identity = compile::library_identity(path);
  REQUIRE(identity);
  fs::create_symlink(path, scratch.path / "moved.so");
  CHECK(compile::library_identity((scratch.path / "moved.so").string()) == identity);
  CHECK(compile::library_identity("/nonexistent") == std::nullopt);
  scratch.write("no-elf", "abc");
  CHECK(compile::library_identity((scratch.path / "no-elf").string()) ==
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("what is known of NVRTC is forgotten when its place changes") {
  if (!test::have_nvrtc()) return;
  const Scratch scratch;
  scratch.write("k.cu", "extern \"C\" __global__ void k(int* p) { *p = 7; }\n");
  const fs::path real = fs::canonical(test::compiler().toolkit().nvrtc_path);
  const fs::path root = real.parent_path().parent_path();
  fs::create_directories(scratch.path / "toolkit");
  fs::create_directory_symlink(root / real.parent_path().filename(), scratch.path / "toolkit/lib64");
  const std::string environment = at(scratch.path / "cache") + " QUERN_HIDE_TOOLKIT=0 CUDA_HOME='" +
                                  (scratch.path / "toolkit").string() + "'";
  REQUIRE(run(environment, scratch.path, "k.cu").at("loaded") == "1");
  // If the folder was changed too recently, the second process checks it again, seconds later at the
  // earliest.
  CHECK(run(environment, scratch.path, "k.cu").at("disk") == "1");
  fs::remove_all(scratch.path / "toolkit");
  scratch.write("toolkit/lib64/libnvrtc.so", "no library");
  const auto after = run(environment, scratch.path, "k.cu");
  CHECK(after.at("loaded") == "1");  // another NVRTC, or the same one in another place
}

TEST_SUITE_END();

TEST_CASE("a watched file is known to have changed by what stat() says; a young one is not settled") {
  const Scratch scratch;
  const std::string file = scratch.write("a", "one");
  const std::vector<compile::WatchedFile> watched{compile::watch(file), compile::watch(file + ".absent"),
                                                  compile::watch("/usr")};
  CHECK(compile::is_unchanged(watched));
  CHECK_FALSE(compile::is_settled(watched[0].state));
  CHECK(compile::is_settled(watched[1].state));
  CHECK(compile::is_settled(watched[2].state));
  SUBCASE("in place, with the former time of modification") {
    const auto before = fs::last_write_time(file);
    scratch.write("a", "two");
    fs::last_write_time(file, before);
  }
  SUBCASE("removed") { fs::remove(file); }
  SUBCASE("made") { scratch.write("a.absent", ""); }
  CHECK_FALSE(compile::is_unchanged(watched));
}

TEST_CASE("the toolkit's headers count where quern's own headers include them") {
  if (!test::have_nvrtc() || !test::have_toolkit_headers()) return;
  const auto counts = [](const std::string& header) {
    const auto key = test::compiler().key_of(test::cuda("#include <" + header + ">\n"));
    REQUIRE(key);
    REQUIRE(key->unsure.empty());
    return std::ranges::any_of(key->components,
                               [](const auto& each) { return each.first == "toolkit headers"; });
  };
  CHECK(counts("cuda_fp16.h"));
  CHECK(counts("cassert"));
  CHECK(counts("quern/cuda/half.cuh"));
  CHECK(counts("quern/cuda/cg.cuh"));
  CHECK_FALSE(counts("quern/device.cuh"));
  CHECK_FALSE(counts("quern/cuda/cmath.cuh"));
}

TEST_CASE("quern's own headers include in one form, which the scan of includes knows") {
  for (const base::EmbeddedText& header : compile::device_headers())
    for (std::size_t at = header.text.find("include"); at != std::string_view::npos;
         at = header.text.find("include", at + 1)) {
      const std::size_t line = header.text.rfind('\n', at) + 1;
      const std::string_view text = header.text.substr(line, header.text.find('\n', at) - line);
      CHECK_MESSAGE((text.starts_with("#include <") || text.find('#') == std::string_view::npos), text);
    }
}
