// SPDX-License-Identifier: Apache-2.0
// Saved modules as bytes from an untrusted source.
#include <doctest/doctest.h>

#include <random>
#include <span>
#include <string>

#include "base/digest.hpp"
#include "session/saved_module.hpp"
#include "session/state.hpp"
#include "tests/unit/support/fake_driver.hpp"

using namespace quern;
using session::CodeTable;
using session::SavedModule;

namespace {

constexpr const char* kPtx =
    ".version 8.0\n.target sm_89\n.address_size 64\n"
    ".visible .entry set(.param .u64 place, .param .f32 value) { ret; }\n";

abi::PtxImage image() {
  abi::PtxImage made;
  made.ptx = kPtx;
  abi::EntryInfo entry{"set", "set", {}, 0, 0};
  entry.parameters = {{"place", "float*", 0, 8, 8, true, false, "float"},
                      {"value", "float", 8, 4, 4, false, false, ""}};
  made.entries = {entry};
  made.cuda_source = "its source";
  made.compile_ms = 4;
  return made;
}

SavedModule sample(const abi::PtxImage& main = image()) {
  SavedModule module;
  module.writer = "0.1.0";
  module.file_name = "set.cu";
  module.target = {75, 90, 12040};
  module.options = {"-DN=4", "--fmad=false"};
  module.name_expressions = {"scale<int>"};
  module.constants = {"SCALE"};
  module.parts = {{"set.cu", std::make_shared<const abi::PtxImage>(main)}};
  module.pieces = {{"scale<float>", "float32", std::make_shared<const abi::PtxImage>(image())}};
  return module;
}

std::string written(const SavedModule& module) { return session::write_saved(module).value(); }

/// The same bytes with a correct checksum, as an attacker could write them.
std::string with_checksum(std::string bytes) {
  const std::string hashed = bytes.substr(0, 20) + bytes.substr(52);
  const base::Digest digest = base::sha256(std::as_bytes(std::span(hashed)));
  bytes.replace(20, 32, reinterpret_cast<const char*>(digest.bytes.data()), 32);
  return bytes;
}

Diagnostic refusal(std::string_view bytes) {
  const Expected<SavedModule> read = session::read_saved(bytes, "m.quern");
  REQUIRE_FALSE(read.has_value());
  return read.errors().front();
}

}  // namespace

TEST_SUITE_BEGIN("saved module");

TEST_CASE("a saved module is read as it was written, without sources and times") {
  const Expected<SavedModule> read = session::read_saved(written(sample()), "m.quern");
  REQUIRE(read);
  CHECK(read->writer == "0.1.0");
  CHECK(read->language == abi::Language::cuda);
  CHECK(read->file_name == "set.cu");
  CHECK(read->target == abi::Target{75, 90, 12040});
  CHECK(read->options == std::vector<std::string>{"-DN=4", "--fmad=false"});
  CHECK(read->name_expressions == std::vector<std::string>{"scale<int>"});
  CHECK(read->constants == std::vector<std::string>{"SCALE"});
  REQUIRE(read->parts.size() == 1);
  CHECK(read->parts[0].name == "set.cu");
  CHECK(read->parts[0].image->ptx == kPtx);
  CHECK(read->parts[0].image->cuda_source.empty());
  CHECK(read->parts[0].image->compile_ms == 0);
  REQUIRE(read->pieces.size() == 1);
  CHECK(read->pieces[0].kernel == "scale<float>");
  CHECK(read->pieces[0].types == "float32");
  CHECK(read->pieces[0].image->entries.front().parameters[1].offset == 8);
}

TEST_CASE("the header has the offsets of docs/saved-modules.md") {
  const std::string bytes = written(sample());
  CHECK(bytes.substr(0, 8) == "\x89quernM\n");
  CHECK(bytes.substr(8, 4) == std::string("\x01\0\0\0", 4));
  std::uint64_t payload = 0;
  for (std::size_t i = 0; i < 8; ++i)
    payload |= std::uint64_t{static_cast<unsigned char>(bytes[12 + i])} << (8 * i);
  CHECK(payload == bytes.size() - 52);
  CHECK(with_checksum(bytes) == bytes);
}

TEST_CASE("a newer format is refused by its number") {
  std::string bytes = written(sample());
  bytes[8] = 9;
  const Diagnostic newer = refusal(with_checksum(bytes));
  CHECK(newer.code == "saved-version");
  CHECK(newer.message.find("cannot load m.quern: it has format 9 of saved modules, and quern") == 0);
  CHECK(newer.message.find("reads format 1") != std::string::npos);
}

TEST_CASE("parameters that are not those of the PTX are refused") {
  for (int field = 0; field < 4; ++field) {
    abi::PtxImage wrong = image();
    abi::ParameterInfo& last = wrong.entries[0].parameters[1];
    if (field == 0) last.offset = 4096;
    if (field == 1) last.size = 1 << 20;
    if (field == 2) wrong.entries[0].parameters.push_back({"more", "int", 12, 4, 4, false, false, ""});
    if (field == 3) wrong.entries[0].lowered_name = "other";
    const Diagnostic found = refusal(written(sample(wrong)));
    CHECK(found.code == "saved-damaged");
    CHECK(found.message == "cannot load m.quern: its list of kernels does not fit its PTX");
  }
}

TEST_CASE("bytes with a right checksum may be anything, and are read or refused") {
  const std::string bytes = written(sample());
  std::mt19937 random(20260103);
  std::size_t refused = 0;
  for (int round = 0; round < 10000; ++round) {
    std::string changed = bytes;
    for (std::uint32_t i = 0; i <= random() % 4; ++i)
      changed[52 + random() % (changed.size() - 52)] = static_cast<char>(random() & 0xff);
    if (round % 10 == 0) changed.resize(52 + random() % (changed.size() - 52));
    refused += session::read_saved(with_checksum(changed), "m.quern") ? 0 : 1;
  }
  CHECK(refused > 1000);
}

TEST_CASE("code for a newer architecture than the device's is refused") {
  test::FakeDriver fake;
  const Session session = session::SessionAccess::with_context(fake.device(), fake.context());
  SavedModule module = sample();
  module.target.compute = 999;
  const std::string bytes = written(module);
  const Expected<Module> loaded = session.try_load_saved(std::as_bytes(std::span(bytes)));
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.errors().front().code == "saved-target");
  CHECK(loaded.errors().front().message.find("it was compiled for compute capability 99.9, and") !=
        std::string::npos);
}

TEST_SUITE_END();
