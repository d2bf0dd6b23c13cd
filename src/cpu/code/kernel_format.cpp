// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/byte_stream.hpp"
#include "cpu/code/kernel_info.hpp"

namespace quern::cpu {
namespace {

using base::ByteReader;
using base::ByteWriter;

constexpr std::string_view kMagic = "quern-kernels";
constexpr std::uint32_t kVersion = 1;
/// More than any kernel needs; the limits of the device are smaller.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostParameterBytes = std::uint64_t{1} << 16;

void write(const KernelInfo& info, ByteWriter& to) {
  to.text(info.name).count(info.params.size());
  for (const ir::Parameter& parameter : info.params)
    to.number(parameter.offset).number(parameter.size).number(parameter.align);
  to.number(info.param_bytes).number(info.static_shared_bytes).number(info.local_bytes);
  to.number(info.const_bytes).number(info.max_threads).number(info.register_count);
}

void read(ByteReader& from, KernelInfo& info) {
  info.name = from.string();
  info.params.resize(from.count(3 * sizeof(std::uint32_t)));
  for (ir::Parameter& parameter : info.params)
    for (std::uint32_t* const field : {&parameter.offset, &parameter.size, &parameter.align})
      *field = from.number<std::uint32_t>();
  for (std::uint64_t* const field :
       {&info.param_bytes, &info.static_shared_bytes, &info.local_bytes, &info.const_bytes})
    *field = from.number<std::uint64_t>();
  info.max_threads = from.number<std::uint32_t>();
  info.register_count = from.number<std::uint32_t>();
}

bool is_sound(const KernelInfo& info) {
  std::uint64_t end = 0;
  for (const ir::Parameter& parameter : info.params)
    end = std::max(end, std::uint64_t{parameter.offset} + parameter.size);
  return info.param_bytes == end && end <= kMostParameterBytes && info.static_shared_bytes <= kMostBytes &&
         info.local_bytes <= kMostBytes && info.const_bytes <= kMostBytes && info.max_threads >= 1 &&
         info.max_threads <= 1024 && info.register_count >= 1 && info.register_count <= 255;
}

}  // namespace

std::string write_kernels(const std::vector<KernelInfo>& kernels) {
  ByteWriter to;
  to.text(kMagic).number(kVersion).count(kernels.size());
  for (const KernelInfo& info : kernels) write(info, to);
  return to.take();
}

Expected<std::vector<KernelInfo>> read_kernels(std::string_view bytes) {
  ByteReader from(bytes);
  if (from.text() == kMagic && from.number<std::uint32_t>() == kVersion) {
    std::vector<KernelInfo> kernels(from.count(7 * sizeof(std::uint64_t)));
    for (KernelInfo& info : kernels) read(from, info);
    if (from.good() && from.at_end() && std::ranges::all_of(kernels, is_sound)) return kernels;
  }
  return Diagnostic{.code = "code-image",
                    .message = "the stored list of kernels is damaged, or of another version of quern",
                    .hint = "it is made anew"};
}

}  // namespace quern::cpu
