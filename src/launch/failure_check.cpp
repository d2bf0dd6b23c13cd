// SPDX-License-Identifier: Apache-2.0
#include "launch/failure_check.hpp"

#include <cstring>

#include "abi/failure.hpp"
#include "quern/error.hpp"

namespace quern::launch {
namespace {

std::string read_text(const runtime::Module& module, const runtime::ModuleVariable& variable) {
  const runtime::Context& context = *module.context();
  const runtime::CurrentContext current(context);
  std::string text(variable.size_bytes, '\0');
  context.check(context.api().cuMemcpyDtoH_v2(text.data(), variable.address, text.size()), "cuMemcpyDtoH",
                "read the name of a kernel's file");
  text.resize(strnlen(text.data(), text.size()));
  return text;
}

}  // namespace

FailureCheck::FailureCheck(const runtime::Module& module, std::string kernel) : kernel_(std::move(kernel)) {
  failure_ = module.variable(abi::kFailureVariable);
  if (failure_ && failure_->size_bytes != sizeof(abi::Failure)) failure_.reset();
  if (const auto file = module.variable(abi::kFailureFileVariable)) file_ = read_text(module, *file);
}

void FailureCheck::after_launch(const runtime::Context& context, CUstream stream) const {
  if (!failure_) return;
  const runtime::Cancellations::Check check(*context.waiting().cancellations(),
                                            runtime::named_stream(stream));
  context.check(context.api().cuStreamSynchronize(stream), "cuStreamSynchronize",
                "wait for kernel " + kernel_);
  abi::Failure failure{};
  context.check(context.api().cuMemcpyDtoH_v2(&failure, failure_->address, sizeof failure), "cuMemcpyDtoH",
                "read whether kernel " + kernel_ + " failed");
  if (failure.taken == 0) return check.require_none();
  const abi::Failure none{};
  context.check(context.api().cuMemcpyHtoD_v2(failure_->address, &none, sizeof none), "cuMemcpyHtoD",
                "forget the failure of kernel " + kernel_);
  throw Error(ErrorCode::device_fault, abi::text_of(failure, kernel_, file_));
}

}  // namespace quern::launch
