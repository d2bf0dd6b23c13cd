// SPDX-License-Identifier: Apache-2.0
// Machine code that one process generates and others find on disk.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "../../support/scratch.hpp"
#include "base/byte_stream.hpp"
#include "cache/entry_format.hpp"

using namespace quern;

namespace {

using Report = std::map<std::string, std::string>;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  REQUIRE_MESSAGE(value != nullptr, name << " is not set: run this through meson test");
  return value;
}

/// A store, and processes that use it.
struct Store {
  test::Scratch scratch;
  std::string environment;  ///< of the processes, beside the store
  std::string mode = "1";   ///< QUERN_CACHE

  Report run(const std::string& scenario, unsigned block = 64,
             const char* library = "QUERN_CPU_PLUGIN") const {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    const std::string command =
        "QUERN_CACHE=" + mode + " QUERN_CACHE_DIR='" + (scratch.path / "cache").string() +
        "' QUERN_CPU_WORKERS=2 QUERN_CPU_MEMORY=256M " + environment + " '" + self + "' child '" +
        variable(library) + "' " + scenario + " " + std::to_string(block) + " 2>&1";
    FILE* const output = ::popen(command.c_str(), "r");
    REQUIRE(output != nullptr);
    std::string text;
    std::array<char, 4096> part;
    while (const std::size_t size = std::fread(part.data(), 1, part.size(), output))
      text.append(part.data(), size);
    const int status = ::pclose(output);
    REQUIRE_MESSAGE(WIFEXITED(status), text);
    REQUIRE_MESSAGE(WEXITSTATUS(status) == 0, text);
    Report report;
    std::istringstream lines(text);
    for (std::string name, value; lines >> name && std::getline(lines >> std::ws, value);)
      report[name] = value;
    return report;
  }

  std::vector<std::filesystem::path> entries(cache::EntryKind kind) const {
    std::vector<std::filesystem::path> found;
    const std::string suffix = cache::entry_suffix(kind);
    for (const auto& each : std::filesystem::recursive_directory_iterator(scratch.path / "cache"))
      if (each.is_regular_file() && each.path().string().ends_with(suffix) &&
          each.path().parent_path().filename() != "quarantine")
        found.push_back(each.path());
    return found;
  }

  /// Replaces the content of all entries of that kind; their checksums are correct.
  void replace(cache::EntryKind kind, const std::string& content) const {
    const auto all = entries(kind);
    REQUIRE_FALSE(all.empty());
    for (const std::filesystem::path& path : all) {
      std::stringstream whole;
      whole << std::ifstream(path, std::ios::binary).rdbuf();
      const std::string bytes = whole.str();
      const Expected<cache::EntryParts> parts = cache::read_entry(bytes);
      REQUIRE(parts);
      std::ofstream(path, std::ios::binary)
          << cache::entry_header(kind, parts->key, parts->components, content) << parts->components
          << content;
    }
  }
};

void check_generated(const Report& report, const char* count) {
  CHECK(report.at("right") == "1");
  CHECK(report.at("generated") == count);
}

}  // namespace

TEST_CASE("a second process generates no machine code and inspects no PTX") {
  const Store store;
  const Report first = store.run("fill");
  check_generated(first, "1");
  CHECK(first.at("texts_checked") == "1");
  CHECK(first.at("from_disk") == "0");
  const Report second = store.run("fill");
  check_generated(second, "0");
  CHECK(second.at("from_disk") == "1");
  CHECK(second.at("texts_checked") == "0");
  CHECK(second.at("texts_from_disk") == "1");
}

TEST_CASE("good code that follows quick code in the background is there for the next process") {
  Store store;
  store.environment = "QUERN_CPU_TIER=auto";
  const Report first = store.run("long-until-stored");
  check_generated(first, "1");
  CHECK(first.at("stored") == "1");
  for (const char* environment : {"QUERN_CPU_TIER=auto", "QUERN_CPU_TIER=good"}) {
    store.environment = environment;
    const Report second = store.run("long");
    check_generated(second, "0");
    CHECK(second.at("from_disk") == "1");
  }
}

TEST_CASE("quick code is neither stored nor taken in place of good code") {
  Store store;
  store.environment = "QUERN_CPU_TIER=quick";
  check_generated(store.run("long"), "1");
  CHECK(store.entries(cache::EntryKind::machine_code).empty());
  store.environment = "QUERN_CPU_TIER=good";
  check_generated(store.run("long"), "1");
  CHECK(store.entries(cache::EntryKind::machine_code).size() == 1);
}

TEST_CASE("a known text with a new block shape is compiled") {
  const Store store;
  check_generated(store.run("fill", 64), "1");
  const Report other = store.run("fill", 96);
  check_generated(other, "1");
  CHECK(other.at("texts_checked") == "0");
  check_generated(store.run("fill", 96), "0");
}

TEST_CASE("machine code for another instruction set is not taken") {
  Store store;
  const Report widest = store.run("fill");
  if (widest.at("isa") == "baseline") {
    MESSAGE("SKIPPED: this processor has no other instruction set");
    return;
  }
  store.environment = "QUERN_CPU_ISA=baseline";
  const Report narrow = store.run("fill");
  CHECK(narrow.at("isa") == "baseline");
  check_generated(narrow, "1");
  CHECK(narrow.at("texts_checked") == "1");
  check_generated(store.run("fill"), "0");
}

TEST_CASE("machine code of another build of the device is not taken") {
  const Store store;
  check_generated(store.run("fill"), "1");
  const Report other = store.run("fill", 64, "QUERN_OTHER_BUILD");
  check_generated(other, "1");
  CHECK(other.at("texts_checked") == "1");
  check_generated(store.run("fill", 64, "QUERN_OTHER_BUILD"), "0");
}

TEST_CASE("a fault in stored code names line, thread and address as in fresh code") {
  const Store store;
  Report fresh = store.run("stray"), stored = store.run("stray");
  CHECK(fresh.at("generated") == "1");
  CHECK(stored.at("generated") == "0");
  for (const Report& report : {fresh, stored}) {
    CHECK(report.at("result") == "700");
    CHECK(report.at("kernel") == "stray");
    CHECK(report.at("file") == "stray.cu");
    CHECK(report.at("line") == "42");
    CHECK(report.at("first_thread") == "37");
    CHECK(report.at("last_thread") == "37");
    CHECK(report.at("knows_address") == "1");
    CHECK(report.at("address") == "4096");
    CHECK(report.at("access") == "2");
  }
}

TEST_CASE("a launch of stored code can be cancelled") {
  const Store store;
  for (const char* const generated : {"2", "0"}) {
    const Report report = store.run("cancel");
    CHECK(report.at("generated") == generated);
    CHECK(report.at("cancelled") == "0");
    CHECK(report.at("result") == "0");
  }
}

TEST_CASE("a time limit ends a launch of stored code") {
  const Store store;
  for (const char* const generated : {"1", "0"}) {
    const Report report = store.run("limit");
    CHECK(report.at("generated") == generated);
    CHECK(report.at("result") == "702");
  }
}

TEST_CASE("entries that hold something else under a right checksum are made anew") {
  const Store store;
  check_generated(store.run("fill"), "1");
  store.replace(cache::EntryKind::machine_code, "no machine code");
  check_generated(store.run("fill"), "1");
  check_generated(store.run("fill"), "0");
  store.replace(cache::EntryKind::kernel_facts, "no facts");
  const Report again = store.run("fill");
  check_generated(again, "0");
  CHECK(again.at("texts_checked") == "1");
  CHECK(store.run("fill").at("texts_checked") == "0");
}

TEST_CASE("damaged entries are made anew") {
  const Store store;
  check_generated(store.run("fill"), "1");
  std::mt19937 random(5);
  for (const cache::EntryKind kind : {cache::EntryKind::machine_code, cache::EntryKind::kernel_facts})
    for (int round = 0; round < 4; ++round) {
      const auto all = store.entries(kind);
      REQUIRE(all.size() == 1);
      std::fstream file(all[0], std::ios::binary | std::ios::in | std::ios::out);
      const auto at = static_cast<std::streamoff>(random() % std::filesystem::file_size(all[0]));
      file.seekg(at);
      const int byte = file.get();
      file.seekp(at);
      file.put(static_cast<char>(byte ^ (1 << (random() % 8))));
      file.close();
      const Report report = store.run("fill");
      check_generated(report, kind == cache::EntryKind::machine_code ? "1" : "0");
      CHECK(report.at("texts_checked") == (kind == cache::EntryKind::kernel_facts ? "1" : "0"));
    }
}

TEST_CASE("a read-only store gives and takes nothing") {
  Store store;
  check_generated(store.run("fill", 64), "1");
  store.mode = "ro";
  check_generated(store.run("fill", 64), "0");
  check_generated(store.run("fill", 96), "1");
  check_generated(store.run("fill", 96), "1");
}

TEST_CASE("without a store nothing is kept") {
  Store store;
  store.mode = "0";
  for (int again = 0; again < 2; ++again) {
    const Report report = store.run("fill");
    check_generated(report, "1");
    CHECK(report.at("texts_checked") == "1");
  }
  CHECK_FALSE(std::filesystem::exists(store.scratch.path / "cache"));
}

TEST_CASE("of processes that begin at once, one generates the code") {
  const Store store;
  std::vector<Report> reports(6);
  std::vector<std::thread> threads;
  for (Report& report : reports) threads.emplace_back([&] { report = store.run("fill"); });
  for (std::thread& thread : threads) thread.join();
  int generated = 0;
  for (const Report& report : reports) {
    CHECK(report.at("right") == "1");
    generated += std::stoi(report.at("generated"));
  }
  CHECK(generated == 1);
}

TEST_CASE("an entry says what it is of") {
  const Store store;
  store.run("fill", 96);
  const auto all = store.entries(cache::EntryKind::machine_code);
  REQUIRE(all.size() == 1);
  std::stringstream whole;
  whole << std::ifstream(all[0], std::ios::binary).rdbuf();
  const std::string bytes = whole.str();
  const Expected<cache::EntryParts> parts = cache::read_entry(bytes);
  REQUIRE(parts);
  base::ByteReader from(parts->components);
  Report components;
  for (std::size_t i = from.count(16); i > 0; --i) {
    const std::string name = from.string();
    components[name] = from.string();
  }
  REQUIRE(from.good());
  CHECK(components["kernel"] == "fill");
  CHECK(components["block"] == "96 x 1 x 1");
  CHECK(components["ptx"].size() == 64);
  CHECK(components["CPU device"].starts_with("build "));
}

namespace {

/// Processes with an empty store and a bundle for blocks of 64 threads.
struct Bundled : Store {
  std::string file = (scratch.path / "b.qbundle").string();

  Bundled() {
    environment = "QUERN_TEST_BUNDLE='" + file + "'";
    made = run("bundle");
    std::filesystem::permissions(file, std::filesystem::perms(0600));
    environment = "QUERN_CACHE_BUNDLES='" + file + "'";
    mode = "0";
  }
  Report made;
};

}  // namespace

TEST_CASE("a process with a bundle generates no machine code and inspects no PTX, on every instruction set") {
  Bundled bundled;
  CHECK(bundled.made.at("entries") == "10");  // facts; three kernels, three instruction sets
  const std::string plain = bundled.environment;
  for (const char* more : {"", " QUERN_CPU_ISA=avx2", " QUERN_CPU_ISA=baseline", " QUERN_CPU_WORKERS=1"}) {
    CAPTURE(more);
    bundled.environment = plain + more;
    const Report report = bundled.run("fill");
    check_generated(report, "0");
    CHECK(report.at("from_bundles") == "1");
    CHECK(report.at("texts_from_bundles") == "1");
    CHECK(report.at("texts_checked") == "0");
    CHECK(report.at("from_disk") == "0");
  }
}

TEST_CASE("a block shape that is not in the bundle is generated") {
  const Bundled bundled;
  const Report report = bundled.run("fill", 32);
  check_generated(report, "1");
  CHECK(report.at("from_bundles") == "0");
}

TEST_CASE("code of a bundle tells of a fault as other code does") {
  const Bundled bundled;
  const Report report = bundled.run("stray");
  CHECK(report.at("generated") == "0");
  CHECK(report.at("from_bundles") == "1");
  CHECK(report.at("line") == "42");
  CHECK(report.at("first_thread") == "37");
  CHECK(report.at("last_thread") == "37");
  CHECK(report.at("address") == "4096");
}

TEST_CASE("code of a bundle can be cancelled and timed out") {
  const Bundled bundled;
  CHECK(bundled.run("cancel").at("result") == "0");
  CHECK(bundled.run("limit").at("result") == "702");  // CUDA_ERROR_LAUNCH_TIMEOUT
}

TEST_CASE("a bundle of another build of the device is not used") {
  const Bundled bundled;
  const Report report = bundled.run("fill", 64, "QUERN_OTHER_BUILD");
  check_generated(report, "1");
  CHECK(report.at("from_bundles") == "0");
}

TEST_CASE("two processes make the same bundle") {
  const Bundled one;
  const Bundled other;
  const auto bytes = [](const std::string& file) {
    std::stringstream whole;
    whole << std::ifstream(file, std::ios::binary).rdbuf();
    return whole.str();
  };
  CHECK(bytes(one.file).size() > 1000);
  CHECK(bytes(one.file) == bytes(other.file));
}
