// SPDX-License-Identifier: Apache-2.0
#include "compile/key_memo.hpp"

#include <functional>
#include <string_view>

#include "compile/toolkit/nvrtc_environment.hpp"

namespace quern::compile {
namespace {

/// The most sources in the memo; when there are more, it begins anew.
constexpr std::size_t kMostBytes = std::size_t{16} << 20;

std::size_t hash_of(const abi::KernelRequest& request) {
  return std::hash<std::string_view>()(request.source.text) ^
         (std::hash<std::string_view>()(request.source.file_name) << 1);
}

/// Signature, entry and constants are Kernel Python's, which the text no longer is.
bool is_same(const abi::KernelRequest& a, const abi::KernelRequest& b) {
  return a.source.text == b.source.text && a.source.file_name == b.source.file_name &&
         a.source.language == b.source.language && a.options == b.options &&
         a.name_expressions == b.name_expressions && a.target == b.target;
}

}  // namespace

std::optional<base::Digest> KeyMemo::find(const abi::KernelRequest& request) {
  if (!request.headers.empty() || !nvrtc_environment().is_plain()) return std::nullopt;
  const std::size_t hash = hash_of(request);
  std::shared_ptr<const Known> found;
  {
    const base::LockGuard lock(mutex_);
    const auto at = known_.find(hash);
    if (at == known_.end()) return std::nullopt;
    found = at->second;
  }
  if (!is_same(found->request, request)) return std::nullopt;
  if (found->files && !found->files->are_as_they_were()) return std::nullopt;
  return found->key;
}

bool KeyMemo::Files::are_as_they_were() const {
  return state_of(folder.path) == folder.state && tree->digest() == tree_digest;
}

void KeyMemo::keep(const CudaPlan& plan, const base::Digest& key) {
  const abi::KernelRequest& request = *plan.request;
  // The working directory is in the keys of what has debug information or machine code.
  const bool depends = (plan.includes.any && !plan.includes.folder) || !request.headers.empty() ||
                       plan.options.debug || plan.machine || !plan.options.include_directories.empty() ||
                       !plan.options.pre_includes.empty() || !plan.options.cacheable ||
                       !nvrtc_environment().is_plain();
  if (depends || request.source.text.size() > kMostBytes / 16) return;
  auto known = std::make_shared<Known>();
  known->request.source = request.source;
  known->request.options = request.options;
  known->request.name_expressions = request.name_expressions;
  known->request.target = request.target;
  known->key = key;
  if (plan.includes.any) {
    const std::shared_ptr<HeaderTree>& tree = plan.toolkit->header_tree;
    known->files = Files{*plan.includes.folder, tree, tree->digest()};
  }
  const base::LockGuard lock(mutex_);
  size_bytes_ += request.source.text.size() + sizeof(Known);
  if (size_bytes_ > kMostBytes) {
    known_.clear();
    size_bytes_ = request.source.text.size() + sizeof(Known);
  }
  known_[hash_of(request)] = std::move(known);
}

}  // namespace quern::compile
