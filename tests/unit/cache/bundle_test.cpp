// SPDX-License-Identifier: Apache-2.0
#include "cache/bundle.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "store_test.hpp"

using namespace quern;
using namespace quern::cache;
using quern::test::key;
using quern::test::Messages;
using quern::test::Scratch;

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QUERN_UNDER_THREAD_SANITIZER 1
#endif
#endif

namespace {

const std::string kFirst(64, 'a');
const std::string kSecond(64, 'b');

BundleKeys keys(const std::string& text) {
  return std::make_shared<const base::SigningKeys>(*base::SigningKeys::parse(text, "keys"));
}

std::vector<BundleEntry> some_entries() {
  return {{EntryKind::machine_code, key(3), "parts", "code of three"},
          {EntryKind::ptx_image, key(2), "", "image of two"},
          {EntryKind::ptx_image, key(1), "file", std::string(3000, 'x')}};
}

std::string bundle_of(const std::vector<BundleEntry>& entries, const BundleKeys& with = nullptr) {
  return *write_bundle(entries, with.get());
}

/// A file that only its owner may write.
std::string put(const Scratch& scratch, const std::string& bytes, const std::string& name = "b") {
  const std::filesystem::path path = scratch.path / (name + ".new");
  test::write(path, bytes);
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  std::filesystem::rename(path, scratch.path / name);
  return (scratch.path / name).string();
}

std::string refusal_of(const std::string& path, const BundleKeys& with = nullptr) {
  const Expected<OpenBundle> open = open_bundle(path, with);
  return open ? "" : open.errors().front().message;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a bundle is laid out as docs/cache-format.md says") {
  const std::string bytes = bundle_of({{EntryKind::machine_code, key(0xab), "par", "content"}});
  REQUIRE(bytes.size() == 64 + 96 + 40 + 10);
  CHECK(bytes.substr(0, 8) == std::string("quernB\n\x1a"));
  CHECK(bytes.substr(8, 8) == std::string("\1\0\0\0\x60\0\0\0", 8));  // version, 0, bytes of a row
  CHECK(bytes.substr(16, 16) == std::string("\1\0\0\0\0\0\0\0\x0a\0\0\0\0\0\0\0", 16));
  CHECK(bytes.substr(64, 8) == std::string("\2\0\0\0\1\0\0\0", 8));  // machine_code-1
  CHECK(bytes.substr(72, 32) == std::string(32, '\xab'));
  CHECK(bytes.substr(104, 8) == std::string("\xc8\0\0\0\0\0\0\0", 8));  // 200: where the body is
  CHECK(bytes.substr(112, 16) == std::string("\3\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0", 16));
  CHECK(bytes.substr(160, 40) == std::string(40, '\0'));  // not signed
  CHECK(bytes.substr(200) == "parcontent");
}

TEST_CASE("entries in any order give the same bundle, and are found in it") {
  std::vector<BundleEntry> entries = some_entries();
  const std::string bytes = bundle_of(entries);
  std::swap(entries[0], entries[2]);
  entries.push_back(entries[1]);
  CHECK(bundle_of(entries) == bytes);
  const Scratch scratch;
  Bundle bundle(put(scratch, bytes), nullptr);
  CHECK(bundle.get(EntryKind::ptx_image, key(1)) == std::string(3000, 'x'));
  CHECK(bundle.get(EntryKind::ptx_image, key(2)) == "image of two");
  CHECK(bundle.get(EntryKind::machine_code, key(3)) == "code of three");
  CHECK(!bundle.get(EntryKind::machine_code, key(1)));
  CHECK(!bundle.get(EntryKind::ptx_image, key(4)));
  CHECK(bundle.hits() == 3);
}

TEST_CASE("an empty bundle is a bundle") {
  const Scratch scratch;
  Bundle bundle(put(scratch, bundle_of({})), nullptr);
  Messages messages;
  CHECK(!bundle.get(EntryKind::ptx_image, key(1)));
  CHECK(messages.count(LogLevel::warning) == 0);
}

TEST_CASE("10,000 damaged bundles give no other bytes than were put in") {
  const std::vector<BundleEntry> entries = some_entries();
  const std::string good = bundle_of(entries, keys(kFirst));
  const Scratch scratch;
  std::mt19937 random(7);
  const auto below = [&](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
  };
  const Messages quiet;
  int refused = 0;
  for (int round = 0; round < 10'000; ++round) {
    std::string bytes = good;
    for (std::size_t i = 0, count = 1 + below(4); i < count; ++i) {
      char& changed = bytes[below(round % 2 == 0 ? bytes.size() : 400)];
      changed = static_cast<char>(changed ^ static_cast<char>(1 + below(255)));
    }
    if (round % 5 == 0) bytes.resize(below(bytes.size() + 1));
    if (round % 7 == 0) bytes.append(below(100), 'y');
    // No keys, so that only the hashes detect damage.
    Bundle bundle(put(scratch, bytes), round % 3 == 0 ? keys(kFirst) : nullptr);
    for (const BundleEntry& entry : entries) {
      const std::optional<std::string> found = bundle.get(entry.kind, entry.key);
      if (found && *found != entry.content) FAIL_CHECK("round ", round);
      refused += found ? 0 : 1;
    }
  }
  CHECK(refused > 9'000);  // most changes affect the index or the large entry
}

TEST_CASE("with keys, only bundles that one of them sealed are used") {
  const Scratch scratch;
  const std::string unsigned_file = put(scratch, bundle_of(some_entries()), "unsigned");
  const std::string signed_file = put(scratch, bundle_of(some_entries(), keys(kFirst)), "signed");
  CHECK(refusal_of(unsigned_file) == "");
  CHECK(refusal_of(signed_file) == "");
  CHECK(says(refusal_of(unsigned_file, keys(kFirst)), "is not signed"));
  CHECK(says(refusal_of(signed_file, keys(kSecond)), "with a key that is not in the key file"));
  // Rotation: the second key is accepted, the first signs.
  CHECK(refusal_of(signed_file, keys(kSecond + "\n" + kFirst)) == "");
  CHECK(open_bundle(signed_file, keys(kFirst))->index.is_signed);
  CHECK(bundle_of({}, keys(kSecond + "\n" + kFirst)) == bundle_of({}, keys(kSecond)));
}

TEST_CASE("a forged index is refused though its hashes are right") {
  const Scratch scratch;
  const std::string real = bundle_of(some_entries(), keys(kFirst));
  std::vector<BundleEntry> others = some_entries();
  others[1].content = "other image!";
  std::string forged = bundle_of(others);
  const std::size_t seal_at = 64 + 3 * 96;
  forged.replace(seal_at, 40, real.substr(seal_at, 40));
  CHECK(says(refusal_of(put(scratch, forged), keys(kFirst)), "signature is wrong"));
}

TEST_CASE("an entry of another bundle, sealed by the same key, does not replace one") {
  const Scratch scratch;
  std::vector<BundleEntry> others = some_entries();
  others[1].content = "older image.";  // as long as the other one, so that all offsets are equal
  const std::string real = bundle_of(some_entries(), keys(kFirst));
  const std::string other = bundle_of(others, keys(kFirst));
  REQUIRE(real.size() == other.size());
  std::string mixed = real;
  const std::size_t bodies = 64 + 3 * 96 + 40;
  mixed.replace(bodies, std::string::npos, other.substr(bodies));
  Bundle bundle(put(scratch, mixed), keys(kFirst));
  Messages messages;
  CHECK(!bundle.get(EntryKind::ptx_image, key(2)));
  CHECK(bundle.damaged() == 1);
  CHECK(messages.count(LogLevel::warning, "does not match its checksum") == 1);
  CHECK(bundle.get(EntryKind::machine_code, key(3)) == "code of three");
  // A row of the other index, with its body.
  mixed = real;
  mixed.replace(64 + 96, 96, other.substr(64 + 96, 96));
  CHECK(says(refusal_of(put(scratch, mixed), keys(kFirst)), "does not match its checksum"));
}

TEST_CASE("without keys, a file that others may write to is refused, and said so once") {
  const Scratch scratch;
  const std::string path = put(scratch, bundle_of(some_entries(), keys(kFirst)));
  std::filesystem::permissions(path, std::filesystem::perms(0666));
  Messages messages;
  Bundle bundle(path, nullptr);
  for (int i = 0; i < 3; ++i) CHECK(!bundle.get(EntryKind::ptx_image, key(2)));
  CHECK(messages.count(LogLevel::warning, "other users may write to it") == 1);
  CHECK(Bundle(path, keys(kFirst)).get(EntryKind::ptx_image, key(2)));
}

TEST_CASE("files that are no bundles are refused with their reason") {
  const Scratch scratch;
  CHECK(says(refusal_of((scratch.path / "missing").string()), "No such file"));
  CHECK(says(refusal_of(scratch.path.string()), "no regular file"));
  CHECK(says(refusal_of(put(scratch, "")), "does not begin as a bundle does"));
  CHECK(says(refusal_of(put(scratch, std::string(500, '\0'))), "does not begin as a bundle does"));
  std::string bytes = bundle_of(some_entries());
  CHECK(says(refusal_of(put(scratch, bytes.substr(0, bytes.size() - 1))), "not those that its header says"));
  bytes[8] = 2;
  CHECK(says(refusal_of(put(scratch, bytes)), "version 2 of the format, and this quern reads 1"));
  const std::string fifo = (scratch.path / "fifo").string();
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(says(refusal_of(fifo), "no regular file"));
}

TEST_CASE("a bundle that is replaced while in use is read anew") {
  const Scratch scratch;
  Bundle bundle(put(scratch, bundle_of(some_entries())), nullptr);
  CHECK(bundle.get(EntryKind::ptx_image, key(2)) == "image of two");
  put(scratch, bundle_of({{EntryKind::ptx_image, key(2), "", "newer image of two"}}));
  CHECK(bundle.get(EntryKind::ptx_image, key(2)) == "newer image of two");
  CHECK(!bundle.get(EntryKind::ptx_image, key(1)));
  std::filesystem::remove(bundle.path());
  CHECK(!bundle.get(EntryKind::ptx_image, key(2)));
}

TEST_CASE("threads and forked children read one bundle, whose file changes") {
  const Scratch scratch;
  const std::string one = bundle_of({{EntryKind::ptx_image, key(1), "", "one"}});
  const std::string two = bundle_of({{EntryKind::ptx_image, key(1), "", "two"}});
  Bundle bundle(put(scratch, one), nullptr);
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const std::optional<std::string> found = bundle.get(EntryKind::ptx_image, key(1));
        if (found && *found != "one" && *found != "two") ++wrong;
      }
    });
  for (int round = 0; round < 20; ++round) {
    put(scratch, round % 2 == 0 ? two : one);
#if !defined(QUERN_UNDER_THREAD_SANITIZER)  // it reports threads that a child process does not have as leaked
    const pid_t child = ::fork();
    if (child == 0) ::_exit(bundle.get(EntryKind::ptx_image, key(1)) ? 0 : 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
#endif
  }
  threads.clear();
  CHECK(wrong == 0);
  CHECK(bundle.damaged() == 0);
}

TEST_CASE("QUERN_CACHE_BUNDLES names absolute files, and a broken key file refuses all") {
  const Scratch scratch;
  const std::string key_file = scratch.write("keys", kFirst + "\n");
  std::filesystem::permissions(key_file, std::filesystem::perms(0600));
  ::setenv("QUERN_CACHE_BUNDLES", "/a:relative::/b", 1);
  const Messages messages;
  CHECK(bundle_settings_of_environment().paths == std::vector<std::string>{"/a", "/b"});
  CHECK(bundle_settings_of_environment().keys == nullptr);
  ::setenv("QUERN_CACHE_BUNDLE_KEY", key_file.c_str(), 1);
  CHECK(bundle_settings_of_environment().keys != nullptr);
  std::filesystem::permissions(key_file, std::filesystem::perms(0644));
  CHECK(says(bundle_settings_of_environment().refusal, "others can read"));
  ::unsetenv("QUERN_CACHE_BUNDLES");
  CHECK(bundle_settings_of_environment().paths.empty());
  ::unsetenv("QUERN_CACHE_BUNDLE_KEY");
}
