// SPDX-License-Identifier: Apache-2.0
// Finds out which instruction of a kernel faulted.
#pragma once

#include <string>

#include "base/thread_annotations.hpp"
#include "cpu/compiler/compiler.hpp"
#include "cpu/engine/jobs.hpp"

namespace quern::cpu::device {

/// Explains faults of one kernel and block shape. At the first fault it compiles the kernel again, with the
/// sites of its instructions; if the machine code differs from `code`'s, faults stay unexplained.
class Explainer final : public engine::FaultExplainer {
 public:
  /// `ptx` and `code` outlive it.
  Explainer(const ptx::Module& ptx, std::string kernel, const Specialisation& specialisation,
            const KernelCode& code);

  void explain(engine::Fault& fault, const engine::Grid& grid,
               const engine::Worker& worker) const noexcept override QUERN_EXCLUDES(mutex_);

 private:
  const CodeSites* sites() const QUERN_EXCLUDES(mutex_);

  const ptx::Module& ptx_;
  const std::string kernel_;
  const Specialisation specialisation_;
  const KernelCode& code_;
  mutable base::Mutex mutex_;
  mutable bool asked_ QUERN_GUARDED_BY(mutex_) = false;
  /// Null: not compiled yet, or the code differs.
  mutable std::shared_ptr<const CodeSites> sites_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::cpu::device
