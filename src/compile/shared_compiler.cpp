// SPDX-License-Identifier: Apache-2.0
#include "compile/shared_compiler.hpp"

#include <atomic>

namespace quern::compile {
namespace {

/// The list has no lock, which a forked child could find held by a thread that it does not have, and its
/// nodes are never freed: threads may compile until the process ends.
struct Node {
  const SearchEnvironment environment;
  const std::string remote;
  const std::shared_ptr<Compiler> compiler;
  Node* next = nullptr;
  std::size_t depth = 1;
};

constexpr std::size_t kMostCompilers = 16;
std::atomic<Node*> newest{nullptr};

std::shared_ptr<Compiler> find(const Node* from, const SearchEnvironment& environment,
                               const std::string& remote) {
  for (const Node* node = from; node != nullptr; node = node->next)
    if (node->environment == environment && node->remote == remote &&
        (!remote.empty() || !node->compiler->lacks_nvrtc()))
      return node->compiler;
  return nullptr;
}

const std::shared_ptr<ImageCache>& images() {
  static const auto* const cache = new std::shared_ptr<ImageCache>(make_image_cache());
  return *cache;
}

}  // namespace

std::shared_ptr<Compiler> shared_compiler(const SearchEnvironment& environment, const RemoteChoice& remote) {
  Node* head = newest.load();
  if (std::shared_ptr<Compiler> known = find(head, environment, remote.name)) return known;
  CompilerOptions options{.environment = environment, .around = {}, .images = images()};
  if (remote.make) {
    options.remote = remote.make();
    options.images = make_image_cache();  // a server's toolkit may be another than the one here
  }
  auto made =
      std::make_unique<Node>(Node{environment, remote.name, std::make_shared<Compiler>(std::move(options))});
  for (;;) {
    if (head != nullptr && head->depth >= kMostCompilers) return made->compiler;
    made->next = head;
    made->depth = head == nullptr ? 1 : head->depth + 1;
    if (newest.compare_exchange_weak(head, made.get())) return made.release()->compiler;
    if (std::shared_ptr<Compiler> known = find(head, environment, remote.name)) return known;
  }
}

// At exit, and in a child of a process that compiled, nothing is compiled any more: no cache is needed.
cache::CacheStats shared_cache_stats() {
  cache::CacheStats stats;
  static_cast<void>(within_gate("count", [&] { stats = images()->stats(); }));
  return stats;
}
void set_shared_cache_bytes(std::uint64_t max_bytes) {
  static_cast<void>(within_gate("bound the cache", [&] { images()->set_max_bytes(max_bytes); }));
}
void clear_shared_cache() {
  static_cast<void>(within_gate("clear the cache", [] { images()->clear(); }));
}

CompileStats shared_compile_stats() {
  CompileStats all;
  for (const Node* node = newest.load(); node != nullptr; node = node->next) {
    const CompileStats stats = node->compiler->stats();
    all.translations += stats.translations;
    all.nvrtc_runs += stats.nvrtc_runs;
    all.cache_hits += stats.cache_hits;
    all.disk_hits += stats.disk_hits;
    all.remote_compiles += stats.remote_compiles;
    all.bundle_hits += stats.bundle_hits;
  }
  return all;
}

}  // namespace quern::compile
