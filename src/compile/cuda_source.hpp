// SPDX-License-Identifier: Apache-2.0
// CUDA C++ -> PtxImage: the NVRTC options of a request, and the run itself.
#pragma once

#include <optional>

#include "abi/kernel_request.hpp"
#include "base/progress.hpp"
#include "compile/options.hpp"
#include "compile/precompiled.hpp"
#include "compile/source/includes.hpp"
#include "compile/toolkit/nvrtc.hpp"
#include "compile/toolkit/toolkit.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// A checked request. Refers to its request and toolkit, which must outlive it.
struct CudaPlan {
  const abi::KernelRequest* request = nullptr;
  const Toolkit* toolkit = nullptr;
  UserOptions options;
  IncludeScan includes;
  std::vector<abi::HeaderText> headers;           ///< the caller's
  std::vector<abi::HeaderText> standard_headers;  ///< those of the toolkit that nothing replaces
  std::optional<std::uint32_t> machine;           ///< the architecture to make machine code for
  Diagnostics log;                                ///< requests that the plan could not follow
};

/// Checks the request (NVRTC need not be open): options, architecture, name expressions, text.
Expected<CudaPlan> plan_cuda(const abi::KernelRequest& request, const Toolkit& toolkit);

/// The files that the plan's source includes, as they are now.
IncludeScan scan_plan(const CudaPlan& plan);

/// The architecture of the plan's first run, which makes the PTX: "compute_89"; "sm_89" where that run makes
/// machine code too.
std::string first_architecture(const CudaPlan& plan);

/// A run of NVRTC, without a question whether to go on.
NvrtcInput nvrtc_input(const CudaPlan& plan, const std::string& architecture);

/// Runs NVRTC, which must be open: once if PTX and machine code are for the same architecture, otherwise once
/// for each. `progress` (may be null) is told of it and may cancel it: diagnostic "cancelled". `precompiled`
/// may be null.
Expected<abi::PtxImage> run_cuda(const CudaPlan& plan, base::ProgressSlot* progress,
                                 PrecompiledHeaders* precompiled = nullptr);

}  // namespace quern::compile
