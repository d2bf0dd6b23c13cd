// SPDX-License-Identifier: Apache-2.0
#include "compile/source/hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "compile/source/log.hpp"

namespace quern::compile {
namespace {

using std::string_view;

struct NameHint {
  string_view names;  // separated by spaces
  string_view hint;
};

constexpr NameHint kIdentifiers[] = {
    {"half half2 __half __half2 __float2half __half2float __hadd __hmul __hfma",
     "add #include <cuda_fp16.h>"},
    {"nv_bfloat16 nv_bfloat162 __nv_bfloat16 __nv_bfloat162 __float2bfloat16", "add #include <cuda_bf16.h>"},
    {"cooperative_groups cg",
     "add #include <cooperative_groups.h> and, for cg, namespace cg = cooperative_groups;"},
    {"quern", "add #include <quern/device.cuh>"},
    {"cub",
     "add the header of the primitive: #include <cub/block/block_reduce.cuh> for cub::BlockReduce; "
     "<cub/cub.cuh> is "
     "for the host's compiler"},
    {"thrust", "Thrust's algorithms run on the host; in a kernel use CUB or cuda::std"},
    {"cuda", "add the header of cuda::std that declares it, for example #include <cuda/std/cmath>"},
    {"int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t",
     "add #include <cuda/std/cstdint> and using cuda::std::uint32_t; (or write unsigned int)"},
    {"assert", "add #include <cuda/std/cassert>"},
    {"INT_MAX INT_MIN UINT_MAX LLONG_MAX CHAR_BIT", "add #include <cuda/std/climits>"},
    {"FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON", "add #include <cuda/std/cfloat>"},
    {"INFINITY NAN HUGE_VAL",
     "write __int_as_float(0x7f800000) for infinity, nanf(\"\") for a NaN, or use <cuda/std/limits>"},
    {"M_PI M_PI_2 M_E M_SQRT2",
     "NVRTC has no <math.h> constants; define it yourself: constexpr double pi = 3.14159265358979323846;"},
    {"cudaMalloc cudaMemcpy cudaFree cudaDeviceSynchronize cudaGetLastError cudaLaunchKernel",
     "that is a host function; kernel source holds device code only"},
    {"cout cerr endl", "use printf in a kernel"},
};

// Names of CUDA C++ that a kernel's author may have misspelt.
constexpr string_view kBuiltins[] = {
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "__syncthreads",
    "__syncwarp",
    "__syncthreads_count",
    "__syncthreads_and",
    "__syncthreads_or",
    "__threadfence",
    "__threadfence_block",
    "__threadfence_system",
    "__shfl_sync",
    "__shfl_up_sync",
    "__shfl_down_sync",
    "__shfl_xor_sync",
    "__ballot_sync",
    "__any_sync",
    "__all_sync",
    "__activemask",
    "atomicAdd",
    "atomicSub",
    "atomicExch",
    "atomicMin",
    "atomicMax",
    "atomicInc",
    "atomicDec",
    "atomicCAS",
    "atomicAnd",
    "atomicOr",
    "atomicXor",
    "printf",
    "fminf",
    "fmaxf",
    "sqrtf",
    "rsqrtf",
    "expf",
    "logf",
    "sinf",
    "cosf",
    "powf",
    "__ldg",
    "__popc",
    "__clz",
    "__ffs",
    "__brev",
    "clock64",
    "__restrict__",
    "__shared__",
    "__device__",
    "__constant__",
};

constexpr string_view kHostLibrary =
    "std:: is the host's library; kernels have cuda::std, for example <cuda/std/array>";

struct MessageHint {
  string_view part;  // of the message
  string_view hint;
};
constexpr MessageHint kMessages[] = {
    {"namespace \"std\" has no member", kHostLibrary},
    {"a __global__ function must have a void return type", "write results through a pointer parameter"},
    {"device code does not support exception handling",
     "return an error code, or end the kernel with __trap()"},
    {"calling a __host__ function", "mark the function __device__"},
    {"uses too much shared data",
     "use less static shared memory, or dynamic shared memory (LaunchConfig::shared_bytes)"},
    {"a variable length array",
     "an array's size must be a constant: make it a template parameter or a macro (LoadOptions::defines)"},
    {"expression must have a constant value",
     "an array's size must be a constant: make it a template parameter or a macro (LoadOptions::defines)"},
    {"dynamic initialization is not supported",
     "a __device__, __constant__ or __shared__ variable needs a constant initialiser"},
    {"identifier \"main\"", "kernel source holds device code only; launch from the host program"},
    {"invalid value for --gpu-architecture",
     "choose an architecture this NVRTC knows: `quern doctor` lists them"},
    {"unrecognized option",
     "quern passes options to NVRTC as they are; see NVRTC's manual, \"Supported Compile Options\""},
};

constexpr string_view kHostHeaders =
    " algorithm array atomic bitset cassert cfloat chrono climits cmath complex concepts cstddef cstdint "
    "cstdio cstdlib cstring "
    "ctime deque exception execution filesystem format fstream functional initializer_list iomanip ios "
    "iostream istream iterator "
    "limits list map math.h memory mutex numeric optional ostream queue random ranges ratio set span sstream "
    "stack stdexcept "
    "stdint.h stdio.h stdlib.h string string.h string_view thread tuple type_traits unordered_map "
    "unordered_set utility variant "
    "vector assert.h float.h limits.h stddef.h unistd.h ";
constexpr string_view kCudaStdHeaders =
    " array atomic bitset cassert cfloat chrono climits cmath complex concepts cstddef cstdint cstdlib "
    "cstring ctime functional "
    "initializer_list iterator limits optional ranges ratio span string_view tuple type_traits utility "
    "variant ";
constexpr string_view kToolkitHeaders =
    " cuda_fp16.h cuda_bf16.h cuda_fp8.h cooperative_groups.h cuda_runtime.h cuda_runtime_api.h "
    "vector_types.h device_functions.h "
    "device_launch_parameters.h mma.h cuda_pipeline.h cub/cub.cuh cuComplex.h math_constants.h ";

bool is_in(string_view list, string_view word) {
  return list.find(fmt::format(" {} ", word)) != string_view::npos;
}

// The text between the first pair of double quotes.
string_view quoted(string_view message) {
  const std::size_t begin = message.find('"');
  if (begin == string_view::npos) return {};
  const std::size_t end = message.find('"', begin + 1);
  return end == string_view::npos ? string_view() : message.substr(begin + 1, end - begin - 1);
}

std::size_t edit_distance(string_view a, string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t k = 0; k <= b.size(); ++k) row[k] = k;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t k = 1; k <= b.size(); ++k) {
      const std::size_t change = diagonal + (a[i - 1] == b[k - 1] ? 0 : 1);
      diagonal = std::exchange(row[k], std::min({row[k] + 1, row[k - 1] + 1, change}));
    }
  }
  return row[b.size()];
}

template <class Range>
std::string nearest(string_view name, const Range& names) {
  std::string best;
  std::size_t best_distance = std::min<std::size_t>(name.size() / 3, 3) + 1;
  for (const auto& candidate : names) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string identifier_hint(string_view name) {
  for (const NameHint& row : kIdentifiers)
    if (is_in(fmt::format(" {} ", row.names), name)) return std::string(row.hint);
  if (const std::string guess = nearest(name, kBuiltins); !guess.empty())
    return fmt::format("did you mean {}?", guess);
  return {};
}

std::string missing_header_hint(string_view name, const HintContext& context) {
  if (is_in(kHostHeaders, name)) {
    string_view plain = name;
    if (plain.ends_with(".h")) plain.remove_suffix(2);
    for (const std::string& device : {std::string(plain), "c" + std::string(plain)})
      if (is_in(kCudaStdHeaders, device))
        return fmt::format("<{}> is a header of the host; kernels have <cuda/std/{}> instead", name, device);
    return fmt::format("<{}> is a header of the host and has no counterpart in kernels: remove it", name);
  }
  const bool toolkit = is_in(kToolkitHeaders, name) || name.starts_with("cuda/") || name.starts_with("cub/");
  if (toolkit && !context.toolkit_headers)
    return "the CUDA toolkit's headers were not found: run tools/setup, or `pip install nvidia-cuda-runtime "
           "nvidia-cuda-crt "
           "nvidia-cuda-cccl`; `quern doctor` shows where they are looked for";
  return fmt::format("name the directory that holds {} in LoadOptions::include_dirs", name);
}

// NVRTC does not name it; the caret below the source line marks its first character.
std::string namespace_hint(const Diagnostic& diagnostic) {
  const string_view line = diagnostic.source_line;
  const std::size_t begin = diagnostic.span.column > 0 ? diagnostic.span.column - 1 : 0;
  if (begin >= line.size()) return std::string(kHostLibrary);
  const string_view rest = line.substr(begin);
  const std::size_t end =
      rest.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  const string_view name = rest.substr(0, end);
  if (name.empty() || name == "std") return std::string(kHostLibrary);
  if (std::string known = identifier_hint(name); !known.empty()) return known;
  return fmt::format("include the header that declares {} above this line", name);
}

std::string hint_for(const Diagnostic& diagnostic, const HintContext& context) {
  const string_view message = diagnostic.message;
  if (message.find("name followed by \"::\" must be a class or namespace name") != string_view::npos ||
      message.find("name must be a namespace name") != string_view::npos)
    return namespace_hint(diagnostic);
  for (const MessageHint& row : kMessages)
    if (message.find(row.part) != string_view::npos) return std::string(row.hint);
  if (message.starts_with("identifier ") && message.ends_with(" is undefined"))
    return identifier_hint(quoted(message));
  if (message.find(" open source file \"") != string_view::npos)
    return missing_header_hint(quoted(message), context);
  return {};
}

std::string list_of(const std::vector<KernelDeclaration>& kernels) {
  if (kernels.empty()) return "the source declares no __global__ function";
  std::string text = "the source's kernels are: ";
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const std::string name = kernels[i].qualified_name() + (kernels[i].is_template ? "<...>" : "");
    text += (i == 0 ? "" : ", ") + name;
  }
  return text;
}

std::string without_spaces(string_view text) {
  std::string result(text);
  std::erase(result, ' ');
  return result;
}

// `Input name expression was: " scale < float > "` -> the request's "scale<float>"
std::optional<std::string> failed_expression(string_view message, const HintContext& context) {
  constexpr string_view kInput = "Input name expression was: \"";
  const std::size_t at = message.find(kInput);
  if (at == string_view::npos) return std::nullopt;
  string_view rest = message.substr(at + kInput.size());
  if (rest.ends_with('"')) rest.remove_suffix(1);
  for (const std::string& expression : context.expressions)
    if (without_spaces(expression) == without_spaces(rest)) return expression;
  return std::string(rest);
}

Diagnostic unknown_kernel(const std::string& expression, const std::string& reason,
                          const HintContext& context) {
  Diagnostic diagnostic;
  diagnostic.code = "unknown-kernel";
  diagnostic.message = fmt::format("cannot instantiate kernel '{}'", expression);
  if (!reason.empty()) diagnostic.message += ": " + reason;
  std::vector<std::string> names;
  for (const KernelDeclaration& kernel : context.kernels) names.push_back(kernel.qualified_name());
  const std::string guess = nearest(string_view(expression).substr(0, expression.find('<')), names);
  diagnostic.hint = (guess.empty() ? "" : fmt::format("did you mean {}? ", guess)) + list_of(context.kernels);
  return diagnostic;
}

// NVRTC reports a bad name expression twice, in the lines it added: first the error, then the expression.
Diagnostics without_name_map(Diagnostics diagnostics, const HintContext& context) {
  Diagnostics result;
  std::string reason;
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.span.file != kNameMapFile) {
      result.push_back(std::move(diagnostic));
    } else if (const std::optional<std::string> expression = failed_expression(diagnostic.message, context)) {
      result.push_back(unknown_kernel(*expression, std::exchange(reason, {}), context));
    } else if (diagnostic.severity == Severity::error) {
      reason = diagnostic.message;
    }
  }
  if (!reason.empty()) result.push_back(unknown_kernel("", reason, context));
  return result;
}

}  // namespace

Diagnostic not_a_template(const std::string& expression, const std::vector<KernelDeclaration>& kernels) {
  const std::string name = expression.substr(0, expression.find('<'));
  return unknown_kernel(expression, name + " is not a template", {.kernels = kernels, .expressions = {}});
}

void add_hints(Diagnostics& diagnostics, const HintContext& context) {
  diagnostics = without_name_map(std::move(diagnostics), context);
  for (Diagnostic& diagnostic : diagnostics)
    if (diagnostic.hint.empty() && diagnostic.severity == Severity::error)
      diagnostic.hint = hint_for(diagnostic, context);
}

}  // namespace quern::compile
