// SPDX-License-Identifier: Apache-2.0
#include "compile/compiler.hpp"

#include <fmt/format.h>

#include <atomic>
#include <mutex>

#include "base/exit_gate.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "compile/cuda_source.hpp"
#include "compile/ptx_source.hpp"
#include "compile/toolkit.hpp"
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

}  // namespace

struct Compiler::State {
  explicit State(CompilerOptions given) : options(std::move(given)), images(options.cache_bytes, size_of) {}

  const CompilerOptions options;
  std::once_flag searched;
  Toolkit found;  // written once, under `searched`
  cache::MemoryCache<abi::PtxImage> images;
  std::atomic<std::uint64_t> translations = 0;
  std::atomic<std::uint64_t> nvrtc_runs = 0;

  void search() {
    const base::ExitGate::Loading loading(gate);
    if (loading)
      found = find_toolkit(options.around);
    else
      found.missing = base::rejected(gate, "open NVRTC");
  }

  /// To be called with a Pass.
  const Toolkit& toolkit() {
    std::call_once(searched, [this] { base::secluded([this] { search(); }); });
    return found;
  }

  Expected<Image> compile_cuda(const abi::KernelRequest& request, base::ProgressSlot* progress) {
    const Expected<CudaPlan> plan = plan_cuda(request, toolkit());
    if (!plan) return plan.errors();
    Image fresh;  // of this very call, with its time; the cache keeps one without
    const auto compute = [&]() -> Expected<Image> {
      ++nvrtc_runs;
      Expected<abi::PtxImage> image = run_cuda(*plan, progress);
      if (!image) return std::move(image).errors();
      base::log({LogLevel::debug,
                 fmt::format("NVRTC compiled {} in {:.1f} ms", request.source.file_name, image->compile_ms),
                 {{"file", request.source.file_name}}});
      fresh = std::make_shared<const abi::PtxImage>(*image);
      image->compile_ms = 0;
      return std::make_shared<const abi::PtxImage>(*std::move(image));
    };
    const std::optional<base::Digest> key = cuda_key(*plan);
    Expected<Image> image = key ? images.get_or_compute(*key, compute) : compute();
    if (image && fresh) return fresh;
    return image;
  }

  /// Through CUDA C++, which the image then holds.
  Expected<Image> compile_python(const abi::KernelRequest& request, base::ProgressSlot* progress) {
    ++translations;
    base::Work translation(progress, ProgressStage::translate, request.source.file_name, 1);
    if (!translation.begin()) return base::cancelled("translate " + request.source.file_name);
    Expected<frontend::CudaSource> source =
        frontend::translate(request.source, request.entry, request.signature, request.constants);
    if (!source) return std::move(source).errors();
    translation.finish(1);
    abi::KernelRequest cuda = request;
    cuda.source.language = abi::Language::cuda;
    cuda.source.text = std::move(source->text);
    cuda.options.insert(cuda.options.end(), source->options.begin(), source->options.end());
    Expected<Image> image = compile_cuda(cuda, progress);
    if (!image) return image;
    abi::PtxImage complete = **image;
    complete.cuda_source = std::move(cuda.source.text);
    complete.log.insert(complete.log.begin(), source->log.begin(), source->log.end());
    return std::make_shared<const abi::PtxImage>(std::move(complete));
  }

  Expected<Image> compile(const abi::KernelRequest& request, base::ProgressSlot* progress) {
    const base::ExitGate::Pass pass(gate);  // also for OpenSSL's digests, which the cache's keys are
    if (!pass) return base::rejected(gate, "compile " + request.source.file_name);
    switch (request.source.language) {
      case abi::Language::cuda:
        return compile_cuda(request, progress);
      case abi::Language::ptx: {
        Expected<abi::PtxImage> image = pass_ptx(request);
        if (!image) return std::move(image).errors();
        return Image(std::make_shared<const abi::PtxImage>(*std::move(image)));
      }
      case abi::Language::python:
        break;
    }
    return compile_python(request, progress);
  }
};

Compiler::Compiler(CompilerOptions options) : state_(std::make_unique<State>(std::move(options))) {
  gate.hold_this_thread();
}
Compiler::~Compiler() = default;

Expected<Compiler::Image> Compiler::compile(const abi::KernelRequest& request, base::ProgressSlot* progress) {
  gate.hold_this_thread();
  return base::secluded([&] { return state_->compile(request, progress); });
}

ToolkitReport Compiler::toolkit() {
  ToolkitReport report;
  const base::ExitGate::Pass pass(gate);
  if (!pass) {
    report.missing = base::rejected(gate, "open NVRTC");
    return report;
  }
  const Toolkit& found = state_->toolkit();
  report.found = found.nvrtc != nullptr;
  if (found.nvrtc) {
    report.nvrtc_path = found.nvrtc->path();
    report.nvrtc_version = fmt::format("{}.{}", found.nvrtc->major(), found.nvrtc->minor());
    report.architectures = found.nvrtc->architectures();
  }
  report.include_directories = found.include_directories;
  if (found.headers_version != 0)
    report.headers_version =
        fmt::format("{}.{}", found.headers_version / 1000, found.headers_version % 1000 / 10);
  report.nvrtc_candidates = found.nvrtc_candidates;
  report.header_candidates = found.header_candidates;
  report.missing = found.missing;
  return report;
}

cache::CacheStats Compiler::cache_stats() const { return state_->images.stats(); }
CompileStats Compiler::stats() const {
  return {state_->translations, state_->nvrtc_runs, state_->images.stats().hits};
}

}  // namespace quern::compile
