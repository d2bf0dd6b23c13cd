// SPDX-License-Identifier: Apache-2.0
#include "compile/key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/byte_stream.hpp"
#include "base/env.hpp"
#include "compile/source/device_headers.hpp"
#include "compile/source/source_digest.hpp"
#include "compile/toolkit/nvrtc_environment.hpp"

namespace quern::compile {
namespace {

namespace fs = std::filesystem;

std::string digest_of(std::string_view text) {
  return base::sha256(std::as_bytes(std::span(text.data(), text.size()))).hex();
}

/// The texts with their lengths: no two lists give the same.
std::string listed(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += fmt::format("{}:{} ", text.size(), text);
  return list;
}

std::string digest_of(const std::vector<abi::HeaderText>& headers) {
  base::DigestBuilder digest;
  for (const abi::HeaderText& header : headers) digest.add(header.name).add(header.text);
  return fmt::format("{} {}", headers.size(), digest.finish().hex());
}

/// NVRTC completes relative names with the working directory. PTX has them as they were given again
/// (restore_file_names), so that the directory matters only for the debug information of -G and of machine
/// code, and for the author's files, which are found from there.
bool depends_on_directory(const CudaPlan& plan, const std::string& directory) {
  return plan.options.debug || plan.machine || !plan.includes.files.empty() || directory == "/";
}

/// The working directory's name in PWD if that is another path to it: NVRTC writes this one to debug
/// information.
std::string named_directory(const std::string& directory) {
  const std::optional<std::string> named = base::env("PWD");
  std::error_code failed;
  if (!named || *named == directory || !fs::equivalent(*named, directory, failed)) return {};
  return "\n" + *named;
}

std::string target_text(const abi::Target& target) {
  return fmt::format("compute_{} sm_{} driver {}", target.compute, target.sm.value_or(0),
                     target.driver_version);
}

class Builder {
 public:
  void add(const char* name, std::string value) { key_.components.emplace_back(name, std::move(value)); }
  void keep_off_disk(std::string why) { key_.not_for_disk = std::move(why); }
  CudaKey finish() {
    base::DigestBuilder digest;
    digest.add("quern cuda");
    for (const auto& [name, value] : key_.components) digest.add(name).add(value);
    key_.digest = digest.finish();
    return std::move(key_);
  }

 private:
  CudaKey key_;
};

void add_toolkit(const Toolkit& toolkit, Builder& key) {
  const NvrtcFacts& nvrtc = *toolkit.facts;
  std::error_code ignored;
  std::string identity = nvrtc.identity;
  if (identity.empty()) {
    identity = fmt::format("{} {}", nvrtc.path, fs::file_size(nvrtc.path, ignored));
    key.keep_off_disk("NVRTC's libraries are not identified");
  }
  key.add("nvrtc", fmt::format("{}.{} {}", nvrtc.major, nvrtc.minor, identity));
  key.add("toolkit directories", listed(toolkit.include_directories));
}

}  // namespace

std::optional<CudaKey> cuda_key(const CudaPlan& plan, std::string* why) {
  const auto unsure = [&](std::string reason) {
    if (why != nullptr) *why = std::move(reason);
    return std::nullopt;
  };
  if (!plan.options.cacheable) return unsure("an option makes NVRTC read or write files of its own");
  if (!plan.includes.complete) return unsure(plan.includes.unsure);
  const NvrtcEnvironment environment = nvrtc_environment();
  if (!environment.uncached.empty())
    return unsure("the environment variable " + environment.uncached + " changes what NVRTC reads");
  const abi::KernelRequest& request = *plan.request;
  Builder key;
  key.add("file", request.source.file_name);
  key.add("source", digest_of(request.source.text));
  key.add("options", listed(request.options));
  key.add("names", listed(request.name_expressions));
  key.add("target", target_text(request.target));
  add_toolkit(*plan.toolkit, key);
  if (!environment.values.empty()) key.add("environment", environment.values);
  key.add("quern", std::string(source_digest()));
  key.add("quern headers", std::string(device_headers_digest()));
  key.add("given headers", digest_of(plan.headers));
  key.add("standard headers", digest_of(plan.standard_headers));
  key.add("includes", plan.includes.digest.hex());
  for (const IncludedFile& file : plan.includes.files)
    key.add("included file", file.path + " " + file.content.hex());
  if (plan.includes.toolkit) {
    const std::optional<base::Digest> tree = plan.toolkit->header_tree->digest();
    if (!tree) return unsure("the toolkit's headers cannot be read, or are changing");
    key.add("toolkit headers", tree->hex());
  }
  std::error_code ignored;
  const std::string directory = fs::current_path(ignored).string();
  const bool depends = depends_on_directory(plan, directory);
  key.add("working directory", depends ? directory + named_directory(directory) : "");
  return key.finish();
}

bool is_still_right(const CudaKey& key, CudaPlan plan) {
  plan.includes = scan_plan(plan);
  if (plan.includes.toolkit) plan.toolkit->header_tree->digest(true);
  const std::optional<CudaKey> now = cuda_key(plan);
  return now && now->digest == key.digest;
}

std::string components_bytes(const CudaKey& key) {
  base::ByteWriter to;
  to.count(key.components.size());
  for (const auto& [name, value] : key.components) {
    to.text(name);
    to.text(value);
  }
  return to.take();
}

std::optional<Components> read_components(std::string_view bytes) {
  base::ByteReader from(bytes);
  Components components(from.count(16));
  for (auto& [name, value] : components) {
    name = from.string();
    value = from.string();
  }
  if (!from.good() || !from.at_end()) return std::nullopt;
  return components;
}

}  // namespace quern::compile
