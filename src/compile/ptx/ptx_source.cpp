// SPDX-License-Identifier: Apache-2.0
#include "compile/ptx/ptx_source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "compile/ptx/entries.hpp"
#include "compile/ptx/ptx_text.hpp"
#include "compile/ptx/ptx_version.hpp"

namespace quern::compile {
namespace {

Diagnostic refusal(const abi::KernelSource& source, std::string code, std::string message, std::string hint) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.span.file = source.file_name;
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  return diagnostic;
}

Expected<void> check(const abi::KernelRequest& request) {
  const abi::KernelSource& source = request.source;
  if (const std::size_t zero = source.text.find('\0'); zero != std::string::npos) {
    Diagnostic diagnostic = refusal(source, "ptx-text", "cannot read PTX: the source holds a zero byte",
                                    "PTX is text; a compiled .cubin or .fatbin is not accepted here");
    const auto end = source.text.begin() + static_cast<std::ptrdiff_t>(zero);
    diagnostic.span.line = 1 + static_cast<std::uint32_t>(std::count(source.text.begin(), end, '\n'));
    return diagnostic;
  }
  if (!find_version(source.text))
    return refusal(
        source, "ptx-text", "cannot read PTX: the source does not begin with a .version directive",
        "begin it with .version 8.0, .target sm_89 and .address_size 64; CUDA C++ belongs into a .cu file");
  if (!request.options.empty())
    return refusal(source, "ptx-options",
                   fmt::format("cannot apply option '{}' to PTX: NVRTC is not used", request.options.front()),
                   "leave the compile options out");
  if (!request.name_expressions.empty())
    return refusal(source, "unknown-kernel",
                   fmt::format("cannot instantiate '{}' from PTX: it has no templates",
                               request.name_expressions.front()),
                   "name the entry as the PTX does");
  return {};
}

}  // namespace

Expected<abi::PtxImage> pass_ptx(const abi::KernelRequest& request) {
  if (Expected<void> good = check(request); !good) return std::move(good).errors();
  abi::PtxImage image;
  image.ptx = request.source.text;
  if (Expected<void> fits = fit_to_driver(image.ptx, request.target.driver_version); !fits)
    return std::move(fits).errors();
  PtxOutline outline = read_outline(image.ptx);
  image.entries = std::move(outline.entries);
  image.variables = std::move(outline.variables);
  name_entries(image.entries, {}, {});
  name_variables(image.variables, {});
  return image;
}

}  // namespace quern::compile
