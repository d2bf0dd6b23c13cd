// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cpu/code/fields.hpp"
#include "cpu/code/kernel_info.hpp"

namespace quern::cpu {
namespace {

constexpr std::string_view kMagic = "quern-kernels";
constexpr std::uint32_t kVersion = 1;
/// Beyond what any kernel can have; the device's own limits are smaller.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostParameterBytes = std::uint64_t{1} << 16;

void write(const KernelInfo& info, FieldWriter& to) {
  to.add(std::string_view(info.name));
  to.add(std::uint64_t{info.params.size()});
  for (const ir::Parameter& parameter : info.params)
    for (const std::uint32_t field : {parameter.offset, parameter.size, parameter.align}) to.add(field);
  for (const std::uint64_t field :
       {info.param_bytes, info.static_shared_bytes, info.local_bytes, info.const_bytes})
    to.add(field);
  to.add(info.max_threads);
  to.add(info.register_count);
}

void read(FieldReader& from, KernelInfo& info) {
  info.name = from.text();
  info.params.resize(from.count(3 * sizeof(std::uint32_t)));
  std::uint64_t end = 0;
  for (ir::Parameter& parameter : info.params) {
    for (std::uint32_t* const field : {&parameter.offset, &parameter.size, &parameter.align})
      *field = from.number<std::uint32_t>();
    end = std::max(end, std::uint64_t{parameter.offset} + parameter.size);
  }
  for (std::uint64_t* const field :
       {&info.param_bytes, &info.static_shared_bytes, &info.local_bytes, &info.const_bytes}) {
    *field = from.number<std::uint64_t>();
    from.need(*field <= kMostBytes);
  }
  from.need(info.param_bytes == end && end <= kMostParameterBytes);
  info.max_threads = from.number<std::uint32_t>();
  from.need(info.max_threads >= 1 && info.max_threads <= 1024);
  info.register_count = from.number<std::uint32_t>();
  from.need(info.register_count >= 1 && info.register_count <= 255);
}

}  // namespace

std::string write_kernels(const std::vector<KernelInfo>& kernels) {
  FieldWriter to;
  to.add(kMagic);
  to.add(kVersion);
  to.add(std::uint64_t{kernels.size()});
  for (const KernelInfo& info : kernels) write(info, to);
  return to.take();
}

Expected<std::vector<KernelInfo>> read_kernels(std::string_view bytes) {
  FieldReader from(bytes);
  from.need(from.text() == kMagic);
  from.need(from.number<std::uint32_t>() == kVersion);
  std::vector<KernelInfo> kernels(from.count(7 * sizeof(std::uint64_t)));
  for (KernelInfo& info : kernels)
    if (from.good()) read(from, info);
  if (from.at_end()) return kernels;
  return Diagnostic{.code = "code-image",
                    .message = "the stored list of kernels is damaged, or of another version of quern",
                    .hint = "it is made anew"};
}

}  // namespace quern::cpu
