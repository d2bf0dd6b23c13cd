// SPDX-License-Identifier: Apache-2.0
// The processes of tools/cache-torture: they write to a store, read from it, and damage it.
//
//   cache-worker write DIR LOG SEED       puts and gets until it is killed; LOG lists the entries that were
// put
//   cache-worker check DIR LOG            reads all entries of LOG
//   cache-worker fill DIR COUNT           puts COUNT entries, of which some may fail, and reads them
//   cache-worker corrupt DIR COUNT SEED   damages COUNT entries and reads them
//   cache-worker handover DIR COUNT       a process computes, another waits for it, COUNT times; prints
//                                         `handover_us` and the times from the publishing to the answer
//
// The last line of the output is `read N wrong N missing N`. The exit status is 1 if a read returned wrong
// bytes.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/digest.hpp"
#include "cache/disk_store.hpp"
#include "quern/log.hpp"

namespace {

using namespace quern;
namespace fs = std::filesystem;
constexpr cache::EntryKind kKind = cache::EntryKind::machine_code;

base::Digest key_of(std::uint64_t number) {
  return base::DigestBuilder().add("torture").add(number).finish();
}

/// The only correct content of an entry: 0 bytes to 128 KiB.
std::string content_of(std::uint64_t number) {
  std::mt19937_64 random(number);
  std::string bytes(random() % (number % 10 == 0 ? 131'072 : 4'096), '\0');
  for (char& each : bytes) each = static_cast<char>(random());
  return bytes;
}

struct Counts {
  std::uint64_t read = 0;
  std::uint64_t wrong = 0;
  std::uint64_t missing = 0;

  void look(cache::DiskStore& store, std::uint64_t number) {
    const std::optional<std::string> bytes = store.get(kKind, key_of(number));
    ++read;
    if (!bytes) ++missing;
    if (bytes && *bytes != content_of(number)) ++wrong;
  }
  int end() const {
    std::printf("read %llu wrong %llu missing %llu\n", static_cast<unsigned long long>(read),
                static_cast<unsigned long long>(wrong), static_cast<unsigned long long>(missing));
    return wrong == 0 ? 0 : 1;
  }
};

/// Ends only by a signal, or with status 1 after a wrong read.
int write(cache::DiskStore& store, const char* log_name, std::uint64_t seed) {
  const int log = ::open(log_name, O_WRONLY | O_CREAT | O_APPEND, 0600);
  std::mt19937_64 random(seed);
  for (;;) {
    const std::uint64_t number = random() % 100'000;
    store.put(kKind, key_of(number), content_of(number));
    const std::string line = std::to_string(number) + "\n";  // one write: whole or not at all
    if (::write(log, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return 2;
    Counts counts;
    counts.look(store, random() % 100'000);
    counts.look(store, number);
    if (counts.wrong != 0) return 1;
  }
}

int check(cache::DiskStore& store, const char* log_name) {
  Counts counts;
  std::ifstream log(log_name);
  for (std::uint64_t number = 0; log >> number;) counts.look(store, number);
  return counts.end();
}

int fill(cache::DiskStore& store, std::uint64_t count) {
  Counts counts;
  for (std::uint64_t number = 0; number < count; ++number)
    store.put(kKind, key_of(number), content_of(number));
  for (std::uint64_t number = 0; number < count; ++number) counts.look(store, number);
  return counts.end();
}

std::string damaged(std::string bytes, std::mt19937_64& random) {
  const auto place = [&] { return bytes.empty() ? 0 : random() % bytes.size(); };
  switch (random() % 7) {
    case 0:  // changes one bit
      bytes[place()] ^= static_cast<char>(1 << random() % 8);
      break;
    case 1:
      bytes.resize(place());
      break;
    case 2:
      bytes += std::string(1 + random() % 100, static_cast<char>(random()));
      break;
    case 3: {  // writes a page of zeros, as after a power failure
      const std::size_t at = place() / 4096 * 4096;
      for (std::size_t i = at; i < std::min(at + 4096, bytes.size()); ++i) bytes[i] = 0;
      break;
    }
    case 4: {  // exchanges two parts
      std::swap(bytes[place()], bytes[place()]);
      break;
    }
    case 5:  // writes random bytes to the header
      for (int i = 0; i < 4; ++i) bytes[random() % 96] = static_cast<char>(random());
      break;
    default:  // replaces everything
      for (char& each : bytes) each = static_cast<char>(random());
      break;
  }
  return bytes;
}

int corrupt(cache::DiskStore& store, const std::string& directory, std::uint64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Counts counts;
  std::uint64_t unchanged = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = random() % 1000;
    store.put(kKind, key_of(number), content_of(number));
    const std::string hex = key_of(number).hex();
    const fs::path file =
        fs::path(directory) / "v1" / hex.substr(0, 2) / (hex.substr(2) + cache::entry_suffix(kKind));
    std::ifstream in(file, std::ios::binary);
    const std::string good{std::istreambuf_iterator<char>(in), {}};
    const std::string bad = damaged(good, random);
    if (bad == good) {
      ++unchanged;
      continue;
    }
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bad;
    const std::optional<std::string> bytes = store.get(kKind, key_of(number));
    ++counts.read;
    if (bytes)
      ++counts.wrong;  // even if the bytes are right: the damage must be found
    else
      ++counts.missing;
  }
  std::printf("%llu changes changed nothing\n", static_cast<unsigned long long>(unchanged));
  return counts.end();
}

std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Holds the claim for some milliseconds, as a compiler does, and publishes the entry. Tells `to` when the
/// claim is held, and when publishing began.
[[noreturn]] void compute(cache::DiskStore& store, std::uint64_t number, int to) {
  std::int64_t begin = 0;
  {
    const auto claim = store.claim(key_of(number));
    if (::write(to, "c", 1) != 1) ::_exit(1);
    std::this_thread::sleep_for(std::chrono::microseconds(5000 + number * 37 % 500));
    begin = clock_ns();
    store.put(kKind, key_of(number), std::string(10'000, 'x'));
  }
  ::_exit(::write(to, &begin, sizeof begin) == sizeof begin ? 0 : 1);
}

int handover(cache::DiskStore& store, std::uint64_t count) {
  std::printf("handover_us");
  for (std::uint64_t number = 1; number <= count; ++number) {
    int ends[2];
    char byte = 0;
    std::int64_t begin = 0;
    if (::pipe(ends) != 0) return 1;
    const pid_t process = ::fork();
    if (process == 0) compute(store, number, ends[1]);
    if (::read(ends[0], &byte, 1) != 1) return 1;
    const auto claim = store.claim(key_of(number));
    const auto bytes = store.get(kKind, key_of(number));
    const std::int64_t end = clock_ns();
    if (!bytes || ::read(ends[0], &begin, sizeof begin) != sizeof begin) return 1;
    ::waitpid(process, nullptr, 0);
    ::close(ends[0]);
    ::close(ends[1]);
    std::printf(" %.1f", static_cast<double>(end - begin) * 1e-3);
  }
  std::printf("\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  set_log_handler([](const LogRecord&) {});
  cache::DiskStoreOptions options;
  options.directory = argv[2];
  cache::DiskStore store(options);
  const std::string_view what = argv[1];
  const auto number = [&](int i) { return i < argc ? std::strtoull(argv[i], nullptr, 10) : 0; };
  if (what == "write") return write(store, argv[3], number(4));
  if (what == "check") return check(store, argv[3]);
  if (what == "fill") return fill(store, number(3));
  if (what == "corrupt") return corrupt(store, argv[2], number(3), number(4));
  if (what == "handover") return handover(store, number(3));
  return 2;
}
