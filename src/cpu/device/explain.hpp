// SPDX-License-Identifier: Apache-2.0
// Finds out which instruction of a kernel faulted.
#pragma once

#include <string>

#include "base/thread_annotations.hpp"
#include "cpu/compiler.hpp"
#include "cpu/engine/jobs.hpp"

namespace quern::cpu::device {

/// For one kernel and block shape. Compiles it again when it is first asked, with the sites of its
/// instructions; if the machine code is not the same as `code`'s, faults stay unexplained.
class Explainer final : public engine::FaultExplainer {
 public:
  /// `ptx` and `code` outlive it.
  Explainer(const ptx::Module& ptx, std::string kernel, const Specialisation& specialisation,
            const KernelCode& code);

  void explain(engine::Fault& fault, const engine::LaunchJob& job,
               const engine::Worker& worker) const noexcept override QUERN_EXCLUDES(mutex_);

 private:
  const CodeSites* sites() const QUERN_EXCLUDES(mutex_);

  const ptx::Module& ptx_;
  const std::string kernel_;
  const Specialisation specialisation_;
  const KernelCode& code_;
  mutable base::Mutex mutex_;
  mutable bool asked_ QUERN_GUARDED_BY(mutex_) = false;
  /// Null: not asked for, or the code is another.
  mutable std::shared_ptr<const CodeSites> sites_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::cpu::device
