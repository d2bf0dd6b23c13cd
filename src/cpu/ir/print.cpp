// SPDX-License-Identifier: Apache-2.0
// Prints IR as text, one line for each instruction: `%12: i32 = iadd %3, 4   ; saxpy.cu:7`. Constants are
// printed as operands.
#include <fmt/format.h>

#include <bit>
#include <iterator>

#include "cpu/ir/ir.hpp"

namespace quern::cpu::ir {
namespace {

constexpr std::string_view kSpaces[] = {"generic", "global", "shared", "local", "constant", "param"};
constexpr std::string_view kRoundings[] = {"rn", "rz", "rm", "rp", "rna"};
constexpr std::string_view kIcmps[] = {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"};
constexpr std::string_view kFcmps[] = {"oeq", "one", "olt", "ole", "ogt", "oge", "ueq",
                                       "une", "ult", "ule", "ugt", "uge", "ord", "uno"};
constexpr std::string_view kApproximations[] = {"div", "div_full", "sqrt", "rsqrt", "rcp",
                                                "ex2", "lg2",      "sin",  "cos",   "tanh"};
constexpr std::string_view kTestProperties[] = {"finite",     "infinite", "number",
                                                "notanumber", "normal",   "subnormal"};
constexpr std::string_view kAtomics[] = {"add", "fadd", "and",  "or",     "xor",        "exch",
                                         "cas", "smin", "smax", "umin",   "umax",       "inc",
                                         "dec", "fmin", "fmax", "arrive", "arrive_drop"};
constexpr std::string_view kSemantics[] = {"weak", "relaxed", "acquire", "release", "acq_rel", "sc"};
constexpr std::string_view kScopes[] = {"none", "cta", "cluster", "gpu", "sys"};
constexpr std::string_view kShuffles[] = {"up", "down", "bfly", "idx"};
constexpr std::string_view kVotes[] = {"all", "any", "uni", "ballot"};
constexpr std::string_view kReductions[] = {"popc", "and", "or"};
constexpr std::string_view kWarpReductions[] = {"add", "smin", "smax", "umin", "umax", "and", "or", "xor"};
constexpr std::string_view kPermutes[] = {"index", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
constexpr std::string_view kHostCalls[] = {"vprintf", "assertfail", "malloc", "free", "fault"};
constexpr std::string_view kTraps[] = {"trap", "assert", "stack_overflow", "divergent_barrier",
                                       "unreachable"};

template <std::size_t Count>
std::string_view word(const std::string_view (&names)[Count], std::uint64_t index) {
  return index < Count ? names[index] : "?";
}

/// The variant of an operation (which comparison, which mode), or empty.
std::string_view variant(const Inst& inst) {
  const Attributes& a = inst.attr;
  switch (inst.op) {
    case Op::icmp:
      return word(kIcmps, static_cast<std::uint64_t>(a.icmp));
    case Op::fcmp:
      return word(kFcmps, static_cast<std::uint64_t>(a.fcmp));
    case Op::atomic:
      return word(kAtomics, static_cast<std::uint64_t>(a.atomic));
    case Op::approx:
      return word(kApproximations, inst.imm);
    case Op::testp:
      return word(kTestProperties, inst.imm);
    case Op::prmt:
      return word(kPermutes, inst.imm);
    case Op::shuffle:
    case Op::shuffle_valid:
      return word(kShuffles, inst.imm);
    case Op::vote:
      return word(kVotes, inst.imm);
    case Op::reduce:
      return word(kWarpReductions, inst.imm);
    case Op::barrier_reduce:
      return word(kReductions, inst.imm);
    case Op::host_call:
      return word(kHostCalls, inst.imm);
    case Op::trap:
      return word(kTraps, inst.imm);
    default:
      return {};
  }
}

bool has_space(Op op) {
  return op == Op::load || op == Op::store || op == Op::atomic || op == Op::to_generic ||
         op == Op::from_generic || op == Op::is_space;
}

std::string head(const Inst& inst) {
  const Attributes& a = inst.attr;
  std::string text(name(inst.op));
  const auto add = [&text](std::string_view part) { text.append(".").append(part); };
  if (const std::string_view part = variant(inst); !part.empty()) add(part);
  if (has_space(inst.op)) add(word(kSpaces, static_cast<std::uint64_t>(a.space)));
  if (a.rounding != Rounding::rn) add(word(kRoundings, static_cast<std::uint64_t>(a.rounding)));
  if (a.semantics != Semantics::weak) add(word(kSemantics, static_cast<std::uint64_t>(a.semantics)));
  if (a.scope != Scope::none) add(word(kScopes, static_cast<std::uint64_t>(a.scope)));
  if (inst.op == Op::f_to_f && (inst.imm & 1) != 0) add("integral");
  if (a.ftz) add("ftz");
  if (a.sat) add("sat");
  if (a.nan) add("nan");
  if (a.relu) add("relu");
  if (a.clamp) add("clamp");
  if (a.is_signed) add("signed");
  if (a.shiftamt) add("shiftamt");
  if (a.is_volatile) add("volatile");
  if (a.invariant) add("invariant");
  if (a.unused_result) add("unused");
  if (a.together) add("together");
  if (a.biased) add("biased");
  if (a.gathers != 0) add(fmt::format("gathers{}", a.gathers - 1));
  if (a.same_places) add("same_places");
  if (a.settles != 0) add(fmt::format("settles{}{:x}", a.settles_all ? "_all" : "", a.settles));
  if (a.count > 1 && inst.op != Op::call) add(fmt::format("x{}", a.count));
  return text;
}

/// The number or name that an operation reads in addition to its operands, or empty.
std::string number(const Module* module, const Inst& inst) {
  switch (inst.op) {
    case Op::param:
      return fmt::format("@{}", inst.imm);
    case Op::special:
      return std::string(name(static_cast<Special>(inst.imm)));
    case Op::symbol:
      if (module != nullptr && inst.imm < module->symbols.size()) return module->symbols[inst.imm].name;
      return fmt::format("#{}", inst.imm);
    case Op::call:
      if (module != nullptr && inst.imm < module->functions.size()) return module->functions[inst.imm].name;
      return fmt::format("#{}", inst.imm);
    case Op::local_address:
    case Op::extract:
    case Op::arg:
    case Op::set_result:
    case Op::dot4:
      return fmt::format("{}", inst.imm);
    case Op::lop3:
      return fmt::format("{:#04x}", inst.imm);
    default:
      return {};
  }
}

std::string constant(const Inst& inst) {
  if (inst.type == Type::i1) return inst.imm != 0 ? "true" : "false";
  if (inst.type == Type::f32)
    return fmt::format("{:#}f", std::bit_cast<float>(static_cast<std::uint32_t>(inst.imm)));
  if (inst.type == Type::f64) return fmt::format("{:#}", std::bit_cast<double>(inst.imm));
  if (is_float(inst.type)) return fmt::format("{}:{:#06x}", name(inst.type), inst.imm);
  const std::uint32_t unused = 64 - bit_size(inst.type);
  return fmt::format("{}", static_cast<std::int64_t>(inst.imm << unused) >> unused);
}

class Printer {
 public:
  Printer(const Module* module, const Function& function) : module_(module), function_(function) {}

  std::string text() {
    header();
    for (BlockId block = 0; block < function_.blocks.size(); ++block) print_block(block);
    return std::move(text_);
  }

 private:
  auto out() { return std::back_inserter(text_); }

  void header() {
    fmt::format_to(out(), "{} {}(", function_.kernel ? "kernel" : "function", function_.name);
    const char* separator = "";
    for (const Parameter& parameter : function_.params) {
      fmt::format_to(out(), "{}{} bytes @{}", separator, parameter.size, parameter.offset);
      separator = ", ";
    }
    for (const Type type : function_.argument_types) {
      fmt::format_to(out(), "{}{}", separator, name(type));
      separator = ", ";
    }
    text_ += ")";
    separator = " -> ";
    for (const Type type : function_.result_types) {
      fmt::format_to(out(), "{}{}", separator, name(type));
      separator = ", ";
    }
    if (function_.local_bytes != 0) fmt::format_to(out(), " local {} bytes", function_.local_bytes);
    if (function_.interleaved_bytes != 0)
      fmt::format_to(out(), ", interleaved by {}", function_.interleaved_bytes);
    text_ += "\n";
  }

  void print_block(BlockId block) {
    const Block& b = function_.blocks[block];
    fmt::format_to(out(), "block{}:", block);
    for (std::size_t i = 0; i < b.preds.size(); ++i)
      fmt::format_to(out(), "{}block{}", i == 0 ? "  ; from " : ", ", b.preds[i]);
    text_ += "\n";
    for (const Value value : b.insts) {
      if (function_[value].op != Op::constant) print_inst(value, b);
    }
  }

  void print_inst(Value value, const Block& block) {
    const Inst& inst = function_[value];
    const std::size_t start = text_.size();
    text_ += "  ";
    if (inst.type != Type::none) fmt::format_to(out(), "%{}: {} = ", value, name(inst.type));
    if (inst.op == Op::call && inst.attr.count > 0) fmt::format_to(out(), "%{} = ", value);
    text_ += head(inst);
    print_operands(inst, block);
    print_location(inst, start);
    text_ += "\n";
  }

  void print_operands(const Inst& inst, const Block& block) {
    const char* separator = " ";
    const auto item = [&](const std::string& text) {
      text_.append(separator).append(text);
      separator = ", ";
    };
    const bool addressed = inst.op == Op::load || inst.op == Op::store || inst.op == Op::atomic;
    if (const std::string plain = number(module_, inst); !plain.empty() && inst.op != Op::extract)
      item(plain);
    for (std::size_t i = 0; i < inst.args.size(); ++i) {
      if (inst.op == Op::phi && i < block.preds.size()) {
        item(fmt::format("[{}, block{}]", operand(inst.args[i]), block.preds[i]));
      } else if (addressed && i == 0) {
        const auto offset = static_cast<std::int64_t>(inst.imm);
        item(offset == 0 ? fmt::format("[{}]", operand(inst.args[0]))
                         : fmt::format("[{} {} {}]", operand(inst.args[0]), offset < 0 ? '-' : '+',
                                       offset < 0 ? 0 - inst.imm : inst.imm));
      } else {
        item(operand(inst.args[i]));
      }
    }
    if (inst.op == Op::extract) item(number(module_, inst));
    if (has_trait(inst.op, 't')) {
      for (const BlockId successor : block.succs) item(fmt::format("block{}", successor));
    }
  }

  std::string operand(Value value) const {
    if (value >= function_.insts.size()) return "%none";
    const Inst& inst = function_[value];
    return inst.op == Op::constant ? constant(inst) : fmt::format("%{}", value);
  }

  void print_location(const Inst& inst, std::size_t start) {
    if (inst.location >= function_.locations.size()) return;
    const Location& where = function_.locations[inst.location];
    const std::size_t width = text_.size() - start;
    text_.append(width < 50 ? 50 - width : 3, ' ');
    if (where.line != 0) {
      const std::size_t slash = where.file.find_last_of("/\\");
      fmt::format_to(out(), "; {}:{}", slash == std::string::npos ? where.file : where.file.substr(slash + 1),
                     where.line);
    } else {
      fmt::format_to(out(), "; ptx:{}", where.ptx_line);
    }
  }

  const Module* module_;
  const Function& function_;
  std::string text_;
};

}  // namespace

std::string print(const Function& function) { return Printer(nullptr, function).text(); }

std::string print(const Module& module) {
  std::string text;
  for (const Symbol& symbol : module.symbols) {
    text += fmt::format("symbol {} {} {} bytes align {}", symbol.name,
                        word(kSpaces, static_cast<std::uint64_t>(symbol.space)), symbol.size, symbol.align);
    if (symbol.space == Space::shared) text += fmt::format(" @{}", symbol.shared_offset);
    text += "\n";
  }
  if (module.static_shared_bytes != 0) text += fmt::format("shared {} bytes\n", module.static_shared_bytes);
  for (const Function& function : module.functions) text += "\n" + Printer(&module, function).text();
  return text;
}

}  // namespace quern::cpu::ir
