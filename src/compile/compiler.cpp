// SPDX-License-Identifier: Apache-2.0
#include "compile/compiler.hpp"

#include <fmt/format.h>

#include <atomic>
#include <mutex>

#include "base/exit_gate.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "compile/bundle_image.hpp"
#include "compile/bundle_lookup.hpp"
#include "compile/cuda_source.hpp"
#include "compile/image_format.hpp"
#include "compile/image_store.hpp"
#include "compile/key.hpp"
#include "compile/key_memo.hpp"
#include "compile/own_headers.hpp"
#include "compile/ptx/entries.hpp"
#include "compile/ptx/ptx_source.hpp"
#include "compile/remote_toolkits.hpp"
#include "compile/source/file_states.hpp"
#include "compile/toolkit/toolkit.hpp"
#include "compile/toolkit/toolkit_facts.hpp"
#include "frontend/translate.hpp"

namespace quern::compile {
namespace {

std::size_t size_of(const abi::PtxImage& image) {
  std::size_t size = sizeof image + image.ptx.size() + image.cuda_source.size() + image.machine_code.size();
  for (const abi::EntryInfo& entry : image.entries) {
    size += sizeof entry + entry.name.size() + entry.lowered_name.size();
    size += entry.parameters.size() * sizeof(abi::ParameterInfo);
  }
  for (const abi::VariableInfo& variable : image.variables)
    size += sizeof variable + variable.name.size() + variable.lowered_name.size();
  return size + image.log.size() * sizeof(Diagnostic);
}

base::ExitGate gate;

/// "13.0" of CUDA_VERSION 13000; empty if it is not known.
std::string version_text(std::uint32_t version) {
  return version == 0 ? std::string() : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

bool is_cancelled(const Expected<Compiler::Image>& image) {
  return !image && image.errors().front().code == "cancelled";
}

}  // namespace

std::shared_ptr<ImageCache> make_image_cache(std::uint64_t max_bytes) {
  return std::make_shared<ImageCache>(max_bytes, size_of);
}

Expected<void> within_gate(const std::string& attempted, const std::function<void()>& work) {
  const base::ExitGate::Pass pass(gate);
  if (!pass) return base::rejected(gate, attempted);
  work();
  return {};
}

struct Compiler::State {
  explicit State(CompilerOptions given) : options(std::move(given)), images(*options.images) {}

  const CompilerOptions options;
  std::once_flag searched;
  Toolkit found;                      // written once, under `searched`
  std::atomic<bool> is_found{false};  // `searched`
  std::atomic<bool> missing{false};   // `searched`, and without result
  std::once_flag recalled;
  std::optional<Toolkit> known;  // written once, under `recalled`
  ImageCache& images;
  KeyMemo keys;
  const BundleLookup bundles{options.bundles, options.any_bundle_toolkit,
                             [this]() -> const Toolkit& { return toolkit_here(); }};
  RemoteToolkits servers{options.remote.get(), options.store};
  CompileCounters counters;  // of all requests

  using Counter = std::atomic<std::uint64_t> CompileCounters::*;
  void count(Counter counter, const Requester& requester) {
    ++(counters.*counter);
    if (requester.counters != nullptr) ++(requester.counters->*counter);
  }

  void search() {
    const base::ExitGate::Loading loading(gate);
    if (loading) {
      const SearchInputs around = options.around ? *options.around : surroundings(options.environment);
      found = find_toolkit(around, options.store);
      if (options.store != nullptr && !options.around)
        remember_toolkit(*options.store, options.environment, around, found);
    } else {
      found.missing = base::rejected(gate, "open NVRTC");
    }
    missing = found.nvrtc == nullptr;
  }

  /// The toolkit with an open NVRTC. Requires a Pass.
  const Toolkit& toolkit() {
    std::call_once(searched, [this] { base::secluded([this] { search(); }); });
    is_found = true;
    return found;
  }

  /// The facts that an earlier process found; null if NVRTC must be opened for them. Requires a Pass.
  const Toolkit* known_toolkit() {
    if (is_found) return &found;
    if (options.store == nullptr || options.around) return nullptr;
    std::call_once(recalled, [this] { known = recall_toolkit(*options.store, options.environment); });
    return known ? &*known : nullptr;
  }

  static Expected<Image> shared(Expected<abi::PtxImage> image) {
    if (!image) return std::move(image).errors();
    return std::make_shared<const abi::PtxImage>(*std::move(image));
  }

  /// The outcome that the disk has under the key.
  std::optional<Expected<Image>> recall(const CudaKey& key, const Requester& requester) {
    if (options.store == nullptr) return std::nullopt;
    std::optional<Expected<abi::PtxImage>> outcome = recall_image(*options.store, key);
    if (!outcome) return std::nullopt;
    count(&CompileCounters::disk_hits, requester);
    return shared(*std::move(outcome));
  }

  /// A server's answer to the request; nothing if it must be compiled here.
  std::optional<RemoteOutcome> ask_server(const abi::KernelRequest& request, const Requester& requester) {
    if (options.remote == nullptr) return std::nullopt;
    std::optional<RemoteOutcome> outcome =
        options.remote->compile(request, found.include_directories, requester.progress);
    if (outcome && outcome->image) count(&CompileCounters::remote_compiles, requester);
    return outcome;
  }

  /// The server's toolkit stands for the one here: what it makes may be kept under the same key.
  bool is_alike(const RemoteToolkit& server, const CudaPlan& plan) const {
    if (!server.is_known() || server.own != own_contents()) return false;
    const std::optional<ToolkitContents> here = compile::toolkit_contents(found, plan.includes.toolkit);
    return here && here->nvrtc == server.contents.nvrtc &&
           (!plan.includes.toolkit || here->headers == server.contents.headers);
  }

  Expected<abi::PtxImage> run(const CudaPlan& plan, const Requester& requester, bool* keep) {
    if (std::optional<RemoteOutcome> outcome = ask_server(*plan.request, requester)) {
      *keep = is_alike(outcome->toolkit, plan);
      return std::move(outcome->image);
    }
    count(&CompileCounters::nvrtc_runs, requester);
    Expected<abi::PtxImage> image = run_cuda(plan, requester.progress, options.precompiled.get());
    gate.library_has_worked();
    if (!image) return image;
    const std::string& file = plan.request->source.file_name;
    base::log({LogLevel::debug,
               fmt::format("NVRTC compiled {} in {:.1f} ms", file, image->compile_ms),
               {{"file", file}}});
    return image;
  }

  /// The image without opening NVRTC: from memory, or from the disk if an earlier process compiled it.
  std::optional<Expected<Image>> find_compiled(const abi::KernelRequest& request,
                                               const Requester& requester) {
    const Toolkit* const earlier = known_toolkit();
    if (earlier == nullptr) return std::nullopt;
    const Expected<CudaPlan> plan = plan_cuda(request, *earlier);
    const std::optional<CudaKey> key = plan ? cuda_key(*plan) : std::nullopt;
    if (!key) return std::nullopt;
    keys.keep(*plan, key->digest);
    if (Image image = images.find(key->digest)) {
      count(&CompileCounters::cache_hits, requester);
      return Expected<Image>(std::move(image));
    }
    std::optional<Expected<Image>> outcome = recall(*key, requester);
    if (outcome) return images.get_or_compute(key->digest, [&] { return *std::move(outcome); });
    return std::nullopt;
  }

  /// The image of this very call.
  struct NewImage {
    Image image;           ///< with its time; the cache keeps one without
    bool is_right = true;  ///< NVRTC read what the key says
  };

  /// Compiles, and keeps the outcome on disk unless a file was changed meanwhile.
  Expected<Image> compile_anew(const CudaPlan& plan, const CudaKey& key, const Requester& requester,
                               NewImage& fresh) {
    // Another process may be compiling the same: then its outcome is this one's.
    const cache::DiskStore::Claim own =
        options.store != nullptr ? options.store->claim(key.digest) : cache::DiskStore::Claim();
    if (std::optional<Expected<Image>> outcome = recall(key, requester)) return *std::move(outcome);
    bool keep = true;
    const bool had_descriptors = has_spare_descriptors(plan.includes);
    const FileStates before(plan.includes);
    Expected<abi::PtxImage> image = run(plan, requester, &keep);
    if (image) {
      fresh.image = std::make_shared<const abi::PtxImage>(*image);
      image->compile_ms = 0;
    }
    fresh.is_right = had_descriptors && has_spare_descriptors(plan.includes) &&
                     before == FileStates(plan.includes) && is_still_right(key, plan);
    if (keep && fresh.is_right && options.store != nullptr) remember_image(*options.store, key, image);
    return shared(std::move(image));
  }

  /// A server's outcome, by a disk that has it under the toolkit that servers use now; where none answers,
  /// under the one that they used last.
  Expected<Image> compile_elsewhere(const abi::KernelRequest& request, const WholeRequest* whole,
                                    const Requester& requester) {
    if (whole != nullptr)
      if (const std::optional<RemoteToolkit> toolkit = servers.toolkit())
        if (std::optional<Expected<Image>> outcome = recall(remote_key(*whole, *toolkit), requester))
          return *std::move(outcome);
    std::optional<RemoteOutcome> outcome = ask_server(request, requester);
    if (!outcome) return toolkit().missing;
    if (outcome->image && outcome->toolkit.is_known()) {
      servers.note(outcome->toolkit);
      if (whole != nullptr && options.store != nullptr)
        remember_image(*options.store, remote_key(*whole, outcome->toolkit), outcome->image);
    }
    return shared(std::move(outcome->image));
  }

  /// Compiles if there is no NVRTC here.
  Expected<Image> compile_elsewhere(const abi::KernelRequest& request, const Requester& requester) {
    const Expected<WholeRequest> whole = with_own_headers(request, {});
    if (!whole) return compile_elsewhere(request, nullptr, requester);  // which says why it cannot
    for (;;) {
      bool asked = false;
      Expected<Image> image = images.get_or_compute(digest_of(whole->request), [&] {
        asked = true;
        return compile_elsewhere(request, &*whole, requester);
      });
      if (!asked && is_cancelled(image)) continue;
      if (image && !asked) count(&CompileCounters::cache_hits, requester);
      return image;
    }
  }

  /// The toolkit as an earlier process found it, or as it is found now. Requires a Pass.
  const Toolkit& toolkit_here() {
    const Toolkit* const earlier = known_toolkit();
    return earlier != nullptr ? *earlier : toolkit();
  }

  std::optional<Image> find_bundled(const abi::KernelRequest& request, const Requester& requester) {
    const auto in_memory = [this](const base::Digest& key) { return images.find(key); };
    const std::optional<BundleLookup::Found> held = bundles.find(request, in_memory);
    if (!held) return std::nullopt;
    count(held->was_in_memory ? &CompileCounters::cache_hits : &CompileCounters::bundle_hits, requester);
    if (held->was_in_memory) return held->image;
    const Expected<Image> kept =
        images.get_or_compute(held->key, [&] { return Expected<Image>(held->image); });
    return kept ? *kept : held->image;
  }

  /// Kernel Python as CUDA C++; other sources as they are.
  static Expected<abi::KernelRequest> translated(abi::KernelRequest request) {
    if (request.source.language != abi::Language::python) return request;
    Expected<frontend::CudaSource> source =
        frontend::translate(request.source, request.entry, request.signature, request.constants);
    if (!source) return std::move(source).errors();
    return cuda_request(request, *source);
  }

  Expected<RequestKey> key_in_bundle(abi::KernelRequest request, cache::Bundle& bundle) {
    const Expected<abi::KernelRequest> cuda = translated(std::move(request));
    if (!cuda) return cuda.errors();
    const Expected<BundleRequest> wanted = bundle_request(*cuda);
    if (!wanted) return RequestKey{wanted.errors().front().message, "", {}};
    std::optional<ToolkitContents> counts = toolkit_of(bundle);
    if (!counts) return unnamed();
    if (!bundles.accepts(*counts, *wanted))
      counts = compile::toolkit_contents(toolkit(), wanted->whole.needs_toolkit);
    if (!counts) return unidentified();
    return RequestKey{"", bundle_key(*wanted, *counts, 0).hex(), bundle_components(*wanted, *counts, 0)};
  }

  static Diagnostic unnamed() {
    Diagnostic diagnostic;
    diagnostic.code = "bundle";
    diagnostic.message = "the bundle is refused, or does not name its toolkit";
    return diagnostic;
  }

  Expected<BundledImage> compile_for_bundle(abi::KernelRequest request, const std::string& name) {
    const base::ExitGate::Pass pass(gate);
    if (!pass) return base::rejected(gate, "compile " + request.source.file_name);
    if (request.source.language == abi::Language::python) request.source.file_name = name;
    const Expected<abi::KernelRequest> cuda = translated(std::move(request));
    if (!cuda) return cuda.errors();
    Expected<BundleRequest> wanted = bundle_request(*cuda);
    if (!wanted) return std::move(wanted).errors();
    wanted->whole.request.source.file_name = name;
    const Expected<Image> image = compile_cuda(wanted->whole.request, {});
    if (!image) return image.errors();
    const Toolkit& here = toolkit_here();
    const std::optional<ToolkitContents> ours = compile::toolkit_contents(here, wanted->whole.needs_toolkit);
    if (!ours) return unidentified();
    cache::BundleEntry entry = image_entry(*wanted, *ours, here.include_directories, **image);
    // The bundle's machine code is made of the PTX that it holds.
    Expected<abi::PtxImage> bundled = read_image(entry.content);
    if (!bundled) return std::move(bundled).errors();
    return BundledImage{std::make_shared<const abi::PtxImage>(*std::move(bundled)), std::move(entry)};
  }

  static Diagnostic unidentified() {
    Diagnostic diagnostic;
    diagnostic.code = "bundle";
    diagnostic.message = "cannot make a bundle: NVRTC's libraries are not identified";
    diagnostic.hint = "see that libnvrtc-builtins lies beside libnvrtc";
    return diagnostic;
  }

  Expected<Image> compile_cuda(const abi::KernelRequest& request, const Requester& requester) {
    if (const std::optional<base::Digest> key = keys.find(request))
      if (Image image = images.find(*key)) {
        count(&CompileCounters::cache_hits, requester);
        return image;
      }
    if (std::optional<Image> image = find_bundled(request, requester)) return *std::move(image);
    if (std::optional<Expected<Image>> outcome = find_compiled(request, requester))
      return *std::move(outcome);
    if (!toolkit().facts && options.remote != nullptr) return compile_elsewhere(request, requester);
    const Expected<CudaPlan> plan = plan_cuda(request, toolkit());
    if (!plan) return plan.errors();
    std::string unsure;
    const std::optional<CudaKey> key = cuda_key(*plan, &unsure);
    if (!key) {
      const std::string& file = request.source.file_name;
      base::log(
          {LogLevel::debug, fmt::format("{} is compiled each time: {}", file, unsure), {{"file", file}}});
      bool ignored = false;
      return shared(run(*plan, requester, &ignored));
    }
    keys.keep(*plan, key->digest);
    for (;;) {
      NewImage fresh;
      bool ran = false;
      Expected<Image> image = images.get_or_compute(key->digest, [&]() -> Expected<Image> {
        ran = true;
        return compile_anew(*plan, *key, requester, fresh);
      });
      if (!ran && is_cancelled(image)) continue;  // by another requester, for whom this thread waited
      if (image && !ran) count(&CompileCounters::cache_hits, requester);
      if (!fresh.is_right) images.drop(key->digest);
      return image && fresh.image ? Expected<Image>(fresh.image) : std::move(image);
    }
  }

  static abi::KernelRequest cuda_request(const abi::KernelRequest& request,
                                         const frontend::CudaSource& source) {
    abi::KernelRequest cuda = request;
    cuda.source.language = abi::Language::cuda;
    cuda.source.text = source.text;
    cuda.options.insert(cuda.options.end(), source.options.begin(), source.options.end());
    return cuda;
  }

  Expected<RequestKey> key_of(const abi::KernelRequest& request) {
    if (request.source.language == abi::Language::ptx)
      return RequestKey{"PTX is not compiled by NVRTC", "", {}};
    const Expected<abi::KernelRequest> cuda = translated(request);
    if (!cuda) return cuda.errors();
    const Toolkit* const earlier = known_toolkit();
    const Expected<CudaPlan> plan = plan_cuda(*cuda, earlier != nullptr ? *earlier : toolkit());
    if (!plan) return plan.errors();
    RequestKey result;
    const std::optional<CudaKey> key = cuda_key(*plan, &result.unsure);
    if (!key) return result;
    return RequestKey{key->not_for_disk, key->digest.hex(), key->components};
  }

  /// Through CUDA C++, which the image then holds.
  Expected<Image> compile_python(const abi::KernelRequest& request, const Requester& requester) {
    count(&CompileCounters::translations, requester);
    base::Work translation(requester.progress, ProgressStage::translate, request.source.file_name, 1);
    if (!translation.begin()) return base::cancelled("translate " + request.source.file_name);
    Expected<frontend::CudaSource> source =
        frontend::translate(request.source, request.entry, request.signature, request.constants);
    if (!source) return std::move(source).errors();
    translation.finish(1);
    abi::KernelRequest cuda = cuda_request(request, *source);
    Expected<Image> image = compile_cuda(cuda, requester);
    if (!image) return image;
    abi::PtxImage complete = **image;
    complete.cuda_source = std::move(cuda.source.text);
    complete.of_python = true;
    note_python_facts(complete);
    complete.log.insert(complete.log.begin(), source->log.begin(), source->log.end());
    return std::make_shared<const abi::PtxImage>(std::move(complete));
  }

  Expected<Image> compile(const abi::KernelRequest& request, const Requester& requester) {
    const base::ExitGate::Pass pass(gate);
    if (!pass) return base::rejected(gate, "compile " + request.source.file_name);
    switch (request.source.language) {
      case abi::Language::cuda:
        return compile_cuda(request, requester);
      case abi::Language::ptx: {
        Expected<abi::PtxImage> image = pass_ptx(request);
        if (!image) return std::move(image).errors();
        return Image(std::make_shared<const abi::PtxImage>(*std::move(image)));
      }
      case abi::Language::python:
        break;
    }
    return compile_python(request, requester);
  }
};

Compiler::Compiler(CompilerOptions options) : state_(std::make_unique<State>(std::move(options))) {
  gate.hold_this_thread();
}
Compiler::~Compiler() = default;

Expected<Compiler::Image> Compiler::compile(const abi::KernelRequest& request, const Requester& requester) {
  gate.hold_this_thread();
  return base::secluded([&] { return state_->compile(request, requester); });
}

Expected<RequestKey> Compiler::key_of(const abi::KernelRequest& request) {
  gate.hold_this_thread();
  const base::ExitGate::Pass pass(gate);
  if (!pass) return base::rejected(gate, "plan the compilation of " + request.source.file_name);
  return base::secluded([&] { return state_->key_of(request); });
}

Expected<base::Digest> Compiler::precompile(const abi::KernelRequest& request, const std::string& file) {
  const base::ExitGate::Pass pass(gate);
  if (!pass) return base::rejected(gate, "precompile " + request.source.file_name);
  return base::secluded([&]() -> Expected<base::Digest> {
    const Expected<CudaPlan> plan = plan_cuda(request, state_->toolkit());
    if (!plan) return plan.errors();
    return compile::precompile(*plan, file);
  });
}

Expected<BundledImage> Compiler::compile_for_bundle(abi::KernelRequest request, const std::string& name) {
  gate.hold_this_thread();
  return base::secluded([&] { return state_->compile_for_bundle(std::move(request), name); });
}

Expected<RequestKey> Compiler::key_in_bundle(abi::KernelRequest request, cache::Bundle& bundle) {
  gate.hold_this_thread();
  const base::ExitGate::Pass pass(gate);
  if (!pass) return base::rejected(gate, "plan the compilation of " + request.source.file_name);
  return base::secluded([&] { return state_->key_in_bundle(std::move(request), bundle); });
}

Expected<ToolkitContents> Compiler::toolkit_contents() {
  gate.hold_this_thread();
  const base::ExitGate::Pass pass(gate);
  if (!pass) return base::rejected(gate, "open NVRTC");
  return base::secluded([&]() -> Expected<ToolkitContents> {
    const Toolkit& here = state_->toolkit();
    if (!here.facts) return here.missing;
    std::optional<ToolkitContents> ours = compile::toolkit_contents(here, true);
    if (!ours) return State::unidentified();
    return *std::move(ours);
  });
}

ToolkitReport Compiler::toolkit() {
  ToolkitReport report;
  const base::ExitGate::Pass pass(gate);
  if (!pass) {
    report.missing = base::rejected(gate, "open NVRTC");
    return report;
  }
  const Toolkit& found = state_->toolkit();
  report.found = found.facts.has_value();
  if (found.facts) {
    report.nvrtc_path = found.facts->path;
    report.nvrtc_version = fmt::format("{}.{}", found.facts->major, found.facts->minor);
    report.architectures = found.facts->architectures;
  }
  report.include_directories = found.include_directories;
  report.headers_version = version_text(found.headers_version);
  report.nvrtc_candidates = found.nvrtc_candidates;
  report.header_candidates = found.header_candidates;
  report.missing = found.missing;
  return report;
}

bool Compiler::lacks_nvrtc() const noexcept { return state_->missing; }
cache::CacheStats Compiler::cache_stats() const { return state_->images.stats(); }
CompileStats Compiler::stats() const { return state_->counters.read(); }

}  // namespace quern::compile
