// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "base/digest.hpp"
#include "base/dynamic_library.hpp"
#include "base/env.hpp"
#include "base/file.hpp"
#include "base/slot_table.hpp"
#include "base/unique_handle.hpp"
#include "quern/error.hpp"
#include "quern/expected.hpp"
#include "quern/file.hpp"

using namespace quern;
using namespace quern::base;
namespace fs = std::filesystem;

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

struct TemporaryDirectory {
  fs::path path;
  TemporaryDirectory() {
    std::string name = (fs::temp_directory_path() / "quern_base_test_XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() { fs::remove_all(path); }
};

struct Variable {
  const char* name;
  Variable(const char* name_, const char* value) : name(name_) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name); }
};

}  // namespace

TEST_CASE("a diagnostic shows place, message, source line with a caret, notes and hint") {
  Diagnostic d;
  d.span = {"a.cu", 3, 5, 8};
  d.message = "unknown name 'foo'";
  d.source_line = "\tx = foo;";
  d.notes.push_back({{"a.cu", 1, 0, 0}, "declared here"});
  d.hint = "did you mean 'for'?";
  CHECK(to_string(d) ==
        "a.cu:3:5: error: unknown name 'foo'\n    \tx = foo;\n    \t   ^~~\na.cu:1: note: declared "
        "here\nhint: did you mean 'for'?\n");
}

TEST_CASE("a caret beyond the line or of unknown column is left out") {
  Diagnostic d;
  d.span = {"a.cu", 1, 50, 0};
  d.message = "m";
  d.source_line = "short";
  CHECK(to_string(d) == "a.cu:1:50: error: m\n    short\n");
  d.span.column = 0;
  CHECK(to_string(d) == "a.cu:1: error: m\n    short\n");
  d.span = {};
  d.source_line.clear();
  d.severity = Severity::warning;
  CHECK(to_string(d) == "warning: m\n");
}

TEST_CASE("Expected holds a value or errors") {
  const Expected<int> good = 3;
  CHECK(good.has_value());
  CHECK(*good == 3);
  Diagnostic d;
  d.message = "no";
  const Expected<int> bad = d;
  CHECK_FALSE(bad);
  CHECK(has_error(bad.errors()));
  CHECK(Expected<void>().has_value());
  CHECK_FALSE(Expected<void>(d).has_value());
}

TEST_CASE("SHA-256 gives the digests of FIPS 180-4's examples") {
  const std::string abc = "abc";
  CHECK(sha256(std::as_bytes(std::span(abc))).hex() ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256({}).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("a digest tells apart where one field ends and the next begins") {
  CHECK(DigestBuilder().add("ab").add("c").finish() != DigestBuilder().add("a").add("bc").finish());
  CHECK(DigestBuilder().add("ab").finish() == DigestBuilder().add("ab").finish());
}

TEST_CASE("a slot table knows its handles and no others") {
  SlotTable<std::string> table;
  const auto a = table.insert("a"), b = table.insert("b");
  CHECK(*table.find(a) == "a");
  CHECK(table.remove(a) == "a");
  CHECK(table.find(a) == nullptr);
  CHECK_FALSE(table.remove(a).has_value());
  const auto c = table.insert("c");  // reuses the slot under another generation
  CHECK(c != a);
  CHECK(table.find(a) == nullptr);
  CHECK(*table.find(b) == "b");
  CHECK(table.find(0) == nullptr);
  CHECK(table.find(0xdeadbeef12345678u) == nullptr);
  CHECK(table.size() == 2);
}

namespace {
int released = 0;
struct CountingTraits {
  using type = int;
  static type null() noexcept { return 0; }
  static void release(type) noexcept { ++released; }
};
}  // namespace

TEST_CASE("a unique handle releases once, moves and lets go") {
  released = 0;
  {
    UniqueHandle<CountingTraits> a(5);
    UniqueHandle<CountingTraits> b(std::move(a));
    CHECK_FALSE(a);
    CHECK(b.get() == 5);
    UniqueHandle<CountingTraits> c(7);
    c = std::move(b);
    CHECK(released == 1);
    CHECK(c.release() == 5);
  }
  CHECK(released == 1);
}

TEST_CASE("a file is written whole or not at all, with ordinary permissions") {
  const TemporaryDirectory directory;
  const fs::path file = directory.path / "f";
  REQUIRE(write_file_atomically(file, bytes("one")));
  REQUIRE(write_file_atomically(file, bytes("two")));
  CHECK(*read_file(file) == "two");
  struct stat info{};
  REQUIRE(::stat(file.c_str(), &info) == 0);
  CHECK((info.st_mode & 0400) != 0);
  CHECK((info.st_mode & 0111) == 0);
  CHECK(std::distance(fs::directory_iterator(directory.path), {}) == 1);  // no temporary left
  const auto failed = write_file_atomically(directory.path / "missing" / "f", bytes("x"));
  REQUIRE_FALSE(failed);
  CHECK(failed.errors().front().message.find("No such file or directory") != std::string::npos);
}

TEST_CASE("a link is written through, and a name may have the greatest length") {
  const TemporaryDirectory directory;
  REQUIRE(write_file_atomically(directory.path / "file", bytes("one")));
  fs::create_symlink("file", directory.path / "link");
  fs::create_symlink("new", directory.path / "dangling");
  REQUIRE(write_file_atomically(directory.path / "link", bytes("two")));
  REQUIRE(write_file_atomically(directory.path / "dangling", bytes("three")));
  CHECK(fs::is_symlink(directory.path / "link"));
  CHECK(*read_file(directory.path / "file") == "two");
  CHECK(*read_file(directory.path / "new") == "three");
  CHECK(write_file_atomically(directory.path / std::string(255, 'n'), bytes("long")));
}

TEST_CASE("a file that would exceed the limit of sizes is not written, and no signal is raised") {
  const TemporaryDirectory directory;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit limit = before;
  limit.rlim_cur = 4096;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);  // SIGXFSZ would end the process
  const auto written = write_file_atomically(directory.path / "file", bytes(std::string(5000, 'x')));
  ::setrlimit(RLIMIT_FSIZE, &before);
  REQUIRE_FALSE(written);
  CHECK(written.errors().front().message.find("File too large") != std::string::npos);
  CHECK(fs::is_empty(directory.path));
}

TEST_CASE("a file without end is not read to its end") {
  const auto read = read_file("/dev/zero");
  REQUIRE_FALSE(read);
  CHECK(read.errors().front().message.find("too large") != std::string::npos);
  CHECK(*read_file("/dev/null") == "");
}

TEST_CASE("reading what is no file says so") {
  CHECK_FALSE(read_file("/nonexistent/file"));
  const auto directory = read_file(fs::temp_directory_path());
  REQUIRE_FALSE(directory);
  CHECK(directory.errors().front().message.find("Is a directory") != std::string::npos);
}

TEST_CASE("environment numbers are numbers in full or nothing") {
  const Variable n("QUERN_TEST_NUMBER", "12"), bad("QUERN_TEST_BAD", "12x"), empty("QUERN_TEST_EMPTY", ""),
      size("QUERN_TEST_SIZE", "3M"), huge("QUERN_TEST_HUGE", "99999999999999G");
  CHECK(env_number("QUERN_TEST_NUMBER") == 12);
  CHECK_FALSE(env_number("QUERN_TEST_BAD"));
  CHECK_FALSE(env("QUERN_TEST_EMPTY"));
  CHECK_FALSE(env("QUERN_TEST_UNSET"));
  CHECK(env_bytes("QUERN_TEST_SIZE") == 3u << 20);
  CHECK(env_bytes("QUERN_TEST_NUMBER") == 12);
  CHECK_FALSE(env_bytes("QUERN_TEST_BAD"));
  CHECK_FALSE(env_bytes("QUERN_TEST_HUGE"));
  static std::string heard;
  const EnvComplaint hear = [](const char*, std::string_view message) { heard += message; };
  CHECK_FALSE(env_bytes("QUERN_TEST_UNSET", hear));
  CHECK(env_number("QUERN_TEST_NUMBER", hear) == 12);
  CHECK(heard.empty());
  CHECK_FALSE(env_number("QUERN_TEST_BAD", hear));
  CHECK(heard == "QUERN_TEST_BAD is not a whole number, and is ignored: 12x");
}

TEST_CASE("environment words, switches and real numbers are what they may be or nothing") {
  const Variable word("QUERN_TEST_WORD", "green"), on("QUERN_TEST_ON", "1"), off("QUERN_TEST_OFF", "0"),
      yes("QUERN_TEST_YES", "yes"), half("QUERN_TEST_HALF", "0.5"), two("QUERN_TEST_TWO", "2"),
      nan("QUERN_TEST_NAN", "nan");
  constexpr std::string_view kColours[] = {"red", "green", "blue"}, kFruit[] = {"apple", "pear", "plum"};
  constexpr EnvRange kShare{0, 1, "a share"};
  static std::string heard;
  const EnvComplaint hear = [](const char*, std::string_view message) {
    heard += std::string(message) + "\n";
  };
  CHECK(env_word("QUERN_TEST_WORD", kColours, hear) == 1);
  CHECK(env_switch("QUERN_TEST_ON", hear) == true);
  CHECK(env_switch("QUERN_TEST_OFF", hear) == false);
  CHECK_FALSE(env_switch("QUERN_TEST_UNSET", hear));
  CHECK(env_real("QUERN_TEST_HALF", kShare, hear) == 0.5);
  CHECK(heard.empty());
  CHECK_FALSE(env_word("QUERN_TEST_WORD", kFruit, hear));
  CHECK_FALSE(env_switch("QUERN_TEST_YES", hear));
  CHECK_FALSE(env_real("QUERN_TEST_TWO", kShare, hear));
  CHECK_FALSE(env_real("QUERN_TEST_NAN", kShare, hear));
  CHECK(heard ==
        "QUERN_TEST_WORD is not apple, pear or plum, and is ignored: green\n"
        "QUERN_TEST_YES is not 0 or 1, and is ignored: yes\n"
        "QUERN_TEST_TWO is not a share, and is ignored: 2\n"
        "QUERN_TEST_NAN is not a share, and is ignored: nan\n");
}

TEST_CASE("a library that is not there is a diagnostic with the loader's reason") {
  const auto library = DynamicLibrary::open("libquern_no_such_library.so.7");
  REQUIRE_FALSE(library);
  CHECK(library.errors().front().message.find("libquern_no_such_library.so.7") != std::string::npos);
  const auto libc = DynamicLibrary::open("libc.so.6");
  REQUIRE(libc);
  CHECK(libc->symbol("strlen") != nullptr);
  CHECK(libc->symbol("no_such_symbol_here") == nullptr);
}

TEST_CASE("a file that must be a regular one of a bounded size is refused before it is read") {
  const TemporaryDirectory directory;
  const fs::path file = directory.path / "file", pipe = directory.path / "pipe";
  REQUIRE(write_file_atomically(file, bytes("twelve bytes")));
  CHECK(*read_regular_file(file, 12) == "twelve bytes");
  CHECK_FALSE(read_regular_file(file, 11));
  fs::resize_file(file, std::uintmax_t{1} << 40);  // sparse
  CHECK_FALSE(read_regular_file(file, 1 << 30));
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);  // without a writer, reading would wait for ever
  const auto read = read_regular_file(pipe, 100);
  REQUIRE_FALSE(read);
  CHECK(read.errors().front().message.ends_with("pipe: it is no regular file"));
  CHECK_FALSE(read_regular_file(directory.path, 100));
  CHECK_FALSE(read_regular_file("/dev/zero", 100));
}
