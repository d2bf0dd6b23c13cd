// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "cpu/abi/warps.hpp"
#include "cpu/code/load.hpp"
#include "cpu/compiler/passes.hpp"
#include "cpu/emit/helpers/helpers.hpp"
#include "cpu/emit/llvm/link.hpp"
#include "cpu/emit/llvm/llvm_code.hpp"
#include "cpu/emit/llvm/llvm_target.hpp"
#include "cpu/emit/llvm/machine_code.hpp"
#include "cpu/emit/operations/context.hpp"

namespace quern::cpu::engine {

/// Every window has the 4 KiB from the beginning of shared memory on.
PendingPlace place_pending(WorkerState& worker, std::uint32_t window, std::uint64_t, std::uint64_t) noexcept {
  alignas(64) static thread_local std::byte memory[kPendingWindows][4096];
  return {reinterpret_cast<std::uint64_t>(worker.shared_base), sizeof memory[window], memory[window]};
}
extern "C" void quern_cpu_yield(WorkerState*) {}
extern "C" void quern_cpu_nanosleep(std::uint32_t) {}
extern "C" std::uint64_t quern_cpu_global_timer() {
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                    std::chrono::nanoseconds(1));
}
extern "C" void quern_cpu_trap(WorkerState*, std::uint32_t) { std::abort(); }

/// Returns a digest of its arguments.
extern "C" std::uint64_t quern_cpu_host_call(WorkerState* worker, const LaunchState*, std::uint32_t call,
                                             const std::uint64_t* args) {
  return call * 1000000u + worker->fault_lane * 10000u + args[0] * 100 + args[1];
}

}  // namespace quern::cpu::engine

namespace quern::cpu::emit::testing {
namespace {

using analysis::LanePatternKind;
using llvm::Value;

struct Frame {
  const std::byte* const* inputs;
  std::byte* const* outputs;
  const Surroundings* around;
  std::uint32_t mask;
};
using Entry = void (*)(const Frame*);

class TestContext final : public Context {
 public:
  TestContext(llvm::IRBuilder<>& builder, const ir::Module& module, const analysis::Analysis& analysis,
              const Machine& machine, Value* frame)
      : analysis_(analysis), frame_(frame), full_(machine.full) {
    builder_ = &builder;
    module_ = &module;
    function_ = &module.functions[0];
    specialisation_.isa = machine.isa;
    specialisation_.block = machine.block;
    specialisation_.alone = machine.alone;
    specialisation_.compact = machine.compact;
  }

  const analysis::Analysis& analysis() const override { return analysis_; }

  Value* scalar(ir::Value value) override {
    REQUIRE_MESSAGE(pattern(value).scalar(), "a scalar was asked of a vector");
    return load_input(value, type_of((*function_)[value].type));
  }

  Value* vector(ir::Value value) override {
    const analysis::LanePattern& form = pattern(value);
    const ir::Type type = (*function_)[value].type;
    if (!form.scalar()) return load_input(value, vector_type_of(type));
    Value* lanes = builder_->CreateVectorSplat(kWarpSize, scalar(value));
    for (const analysis::Term& term : form.terms)
      lanes = builder_->CreateAdd(lanes, term_lanes(term, lanes->getType()));
    if (form.kind == LanePatternKind::offset32) {
      Value* const index = vector(form.index);
      Value* const wide = form.index_signed ? builder_->CreateSExt(index, lanes->getType())
                                            : builder_->CreateZExt(index, lanes->getType());
      lanes = builder_->CreateAdd(
          lanes, builder_->CreateMul(wide, llvm::ConstantInt::getSigned(lanes->getType(), form.scale)));
    }
    return lanes;
  }

  void define(ir::Value value, Value* what) override { define_element(value, 0, what); }
  void define_element(ir::Value value, unsigned index, Value* what) override {
    CHECK_MESSAGE(what->getType()->isVectorTy() != pattern(value).scalar(),
                  "the form defined is not that of the pattern");
    const ir::Type type = (*function_)[value].type;
    CHECK_MESSAGE(what->getType()->getScalarType() == type_of(type),
                  "the type defined is not the instruction's");
    if (!what->getType()->isVectorTy()) what = builder_->CreateVectorSplat(kWarpSize, what);
    if (type == ir::Type::i1)
      what = builder_->CreateZExt(what, llvm::FixedVectorType::get(builder_->getInt8Ty(), kWarpSize));
    builder_->CreateAlignedStore(what, pointer_field(offsetof(Frame, outputs), index), llvm::Align(1));
  }

  bool full() const override { return full_; }
  Value* mask() override {
    llvm::Type* const type = llvm::FixedVectorType::get(builder_->getInt1Ty(), kWarpSize);
    return full_ ? llvm::Constant::getAllOnesValue(type) : builder_->CreateBitCast(mask_bits(), type);
  }
  Value* mask_bits() override {
    if (full_) return builder_->getInt32(0xffffffffu);
    return builder_->CreateLoad(builder_->getInt32Ty(), byte_of(frame_, offsetof(Frame, mask)));
  }

  bool may_be_empty() const override { return false; }
  Value* params() override {
    return state(offsetof(Surroundings, launch) + offsetof(engine::LaunchState, params),
                 builder_->getPtrTy());
  }
  Value* window_base() override {
    return state(offsetof(Surroundings, launch) + offsetof(engine::LaunchState, window_base),
                 builder_->getInt64Ty());
  }
  Value* window_bytes() override {
    return state(offsetof(Surroundings, launch) + offsetof(engine::LaunchState, window_bytes),
                 builder_->getInt64Ty());
  }
  Value* window_limit(std::uint32_t, std::uint32_t, std::uint32_t) override { return window_bytes(); }
  Value* streams(ir::Value) override { return nullptr; }
  Value* shared_base() override {
    return state(offsetof(Surroundings, worker) + offsetof(engine::WorkerState, shared_base),
                 builder_->getPtrTy());
  }
  Value* local_base() override {
    return state(offsetof(Surroundings, worker) + offsetof(engine::WorkerState, local_base),
                 builder_->getPtrTy());
  }
  Value* local_begin() override { return builder().getInt64(0); }
  Value* local_stride() override {
    return state(offsetof(Surroundings, worker) + offsetof(engine::WorkerState, local_stride),
                 builder_->getInt64Ty());
  }
  Value* launch() override { return byte_of(around(), offsetof(Surroundings, launch)); }
  Value* worker() override { return byte_of(around(), offsetof(Surroundings, worker)); }
  Value* ctaid(unsigned dimension) override {
    return state(offsetof(Surroundings, ctaid) + dimension * 4, builder_->getInt32Ty());
  }
  Value* warp_index() override { return state(offsetof(Surroundings, warp), builder_->getInt32Ty()); }
  Value* live_bits() override { return builder_->getInt32(0xffffffffu); }

  llvm::FunctionCallee helper(std::string_view name, llvm::FunctionType* type) override {
    return builder_->GetInsertBlock()->getModule()->getOrInsertFunction(
        llvm::StringRef(name.data(), name.size()), type);
  }
  llvm::BasicBlock* new_block(const char* name) override {
    auto* const block =
        llvm::BasicBlock::Create(builder_->getContext(), name, builder_->GetInsertBlock()->getParent());
    builder_->SetInsertPoint(block);
    return block;
  }

 private:
  Value* byte_of(Value* pointer, std::size_t offset) {
    return builder_->CreateConstGEP1_64(builder_->getInt8Ty(), pointer, offset);
  }
  Value* around() {
    return builder_->CreateLoad(builder_->getPtrTy(), byte_of(frame_, offsetof(Frame, around)));
  }
  Value* state(std::size_t offset, llvm::Type* type) {
    return builder_->CreateLoad(type, byte_of(around(), offset));
  }
  Value* pointer_field(std::size_t field, unsigned index) {
    Value* const table = builder_->CreateLoad(builder_->getPtrTy(), byte_of(frame_, field));
    return builder_->CreateLoad(builder_->getPtrTy(), byte_of(table, index * sizeof(void*)));
  }
  Value* load_input(ir::Value value, llvm::Type* type) {
    const bool is_bit = type->getScalarType()->isIntegerTy(1);
    llvm::Type* const memory = is_bit ? type->getWithNewType(builder_->getInt8Ty()) : type;
    Value* const loaded =
        builder_->CreateAlignedLoad(memory, pointer_field(offsetof(Frame, inputs), value), llvm::Align(1));
    return is_bit ? builder_->CreateTrunc(loaded, type) : loaded;
  }
  Value* term_lanes(const analysis::Term& term, llvm::Type* type) {
    llvm::SmallVector<llvm::Constant*, kWarpSize> offsets;
    for (const std::int64_t at : term.offsets)
      offsets.push_back(llvm::ConstantInt::getSigned(type->getScalarType(), at));
    Value* const lanes = llvm::ConstantVector::get(offsets);
    if (term.coefficient == ir::kNone) return lanes;
    Value* const factor = builder_->CreateVectorSplat(kWarpSize, scalar(term.coefficient));
    return builder_->CreateMul(
        lanes, term.sign_extend ? builder_->CreateSExt(factor, type) : builder_->CreateZExt(factor, type));
  }

  const analysis::Analysis& analysis_;
  Value* frame_;
  bool full_;
};

/// Creating one takes as long as compiling a small operation.
llvm::TargetMachine* target_machine(const Machine& machine) {
  static std::map<std::pair<Isa, unsigned>, std::unique_ptr<llvm::TargetMachine>> made;
  auto& found = made[{machine.isa, machine.opt_level}];
  if (found == nullptr) found = make_target_machine(machine.isa, machine.opt_level);
  return found.get();
}

ir::Module module_of(const Operation& operation, analysis::Analysis& analysis) {
  ir::Module module;
  module.symbols = operation.symbols;
  module.functions.emplace_back();
  ir::Function& function = module.functions[0];
  function.kernel = true;
  function.params = operation.params;
  for (const Input& input : operation.inputs) {
    function.insts.push_back({.op = ir::Op::arg, .type = input.type});
    analysis.patterns.push_back(input.pattern);
    analysis.residues.emplace_back();
  }
  ir::Inst inst{.op = operation.op, .type = operation.type, .attr = operation.attr, .imm = operation.imm};
  // Values that only a pattern refers to (the index of an offset, a coefficient) are no operands.
  for (ir::Value value = 0; value < operation.inputs.size(); ++value) {
    bool is_operand = true;
    for (const Input& input : operation.inputs) {
      is_operand = is_operand && input.pattern.index != value;
      for (const analysis::Term& term : input.pattern.terms)
        is_operand = is_operand && term.coefficient != value;
    }
    if (is_operand) inst.args.push_back(value);
  }
  function.insts.push_back(inst);
  analysis.patterns.push_back(operation.result);
  analysis.residues.emplace_back();
  analysis.halves.resize(analysis.patterns.size(), false);
  analysis.below.resize(analysis.patterns.size(), false);
  return module;
}

OwnedLlvmCode emit(const Operation& operation, const Machine& machine) {
  analysis::Analysis analysis;
  const ir::Module module = module_of(operation, analysis);
  REQUIRE_MESSAGE(can_emit(module.functions[0].insts.back()), "can_emit refuses the operation");
  Specialisation specialisation;
  specialisation.opt_level = machine.opt_level;
  Compilation compilation(ir::Module{}, specialisation);
  compilation.llvm = OwnedLlvmCode(new LlvmCode("test", *target_machine(machine)));
  LlvmCode& out = *compilation.llvm;
  llvm::IRBuilder<> builder(*out.context);
  auto* const type = llvm::FunctionType::get(builder.getVoidTy(), {builder.getPtrTy()}, false);
  auto* const function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "test", *out.module);
  set_function_attributes(*function, machine.isa);
  builder.SetInsertPoint(llvm::BasicBlock::Create(*out.context, "entry", function));
  TestContext context(builder, module, analysis, machine, function->getArg(0));
  emit_operation(context, static_cast<ir::Value>(module.functions[0].insts.size() - 1));
  builder.CreateRetVoid();
  const auto done = run_passes(compilation, "verify_llvm", Form::llvm);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.errors()[0].message));
  return std::move(compilation.llvm);
}

}  // namespace

std::vector<Lanes> Compiled::run(const std::vector<Lanes>& inputs, std::uint32_t mask,
                                 const Surroundings& around) const {
  std::vector<std::array<std::byte, 256>> in(inputs.size());
  std::vector<const std::byte*> in_pointers;
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    const std::size_t bytes = ir::byte_size(input_types[at]);
    for (std::size_t lane = 0; lane < 32; ++lane)
      std::memcpy(in[at].data() + lane * bytes, &inputs[at][lane], bytes);
    in_pointers.push_back(in[at].data());
  }
  std::vector<std::array<std::byte, 256>> out(output_types.size());
  std::vector<std::byte*> out_pointers;
  for (auto& buffer : out) out_pointers.push_back(buffer.data());
  const Frame frame{in_pointers.data(), out_pointers.data(), &around, mask};
  reinterpret_cast<Entry>(entry)(&frame);
  std::vector<Lanes> results(out.size());
  for (std::size_t at = 0; at < out.size(); ++at) {
    const std::size_t bytes = ir::byte_size(output_types[at]);
    for (std::size_t lane = 0; lane < 32; ++lane)
      std::memcpy(&results[at][lane], out[at].data() + lane * bytes, bytes);
  }
  return results;
}

Compiled compile(const Operation& operation, const Machine& machine) {
  const OwnedLlvmCode emitted = emit(operation, machine);
  auto object = make_object(*emitted->module, emitted->machine);
  REQUIRE_MESSAGE(object.has_value(), (object ? "" : object.errors()[0].message));
  const auto linked = link_object((*object)->getMemBufferRef(), "test");
  REQUIRE_MESSAGE(linked.has_value(), (linked ? "" : linked.errors()[0].message));
  const auto loaded = map_code(*linked, helpers());
  REQUIRE_MESSAGE(loaded.has_value(), (loaded ? "" : loaded.errors()[0].message));
  Compiled compiled;
  compiled.code = loaded->memory;
  compiled.entry = loaded->entry;
  for (const Input& input : operation.inputs) compiled.input_types.push_back(input.type);
  compiled.output_types.assign(operation.type == ir::Type::none ? 0 : operation.elements, operation.type);
  return compiled;
}

std::string assembly(const Operation& operation, const Machine& machine) {
  const OwnedLlvmCode emitted = emit(operation, machine);
  auto text = print_assembly(*emitted);
  return text ? *text : text.errors()[0].message;
}

Lanes filled(std::uint64_t value) {
  Lanes lanes{};
  lanes.fill(value);
  return lanes;
}

static bool tries_a_part() { return std::getenv("QUERN_TEST_FRACTION") != nullptr; }

std::uint8_t usual_level() { return tries_a_part() ? 0 : 2; }

std::vector<Isa> isas() {
  std::vector<Isa> found = {Isa::baseline};
  if (widest_isa() == Isa::avx512 && !tries_a_part()) found.push_back(Isa::avx2);
  if (widest_isa() != Isa::baseline) found.push_back(widest_isa());
  return found;
}

const char* name_of(Isa isa) {
  return isa == Isa::baseline ? "baseline" : isa == Isa::avx2 ? "avx2" : "avx512";
}

analysis::LanePattern uniform() { return {.kind = LanePatternKind::uniform}; }
analysis::LanePattern uniform_constant(std::uint64_t value) {
  return {.kind = LanePatternKind::uniform, .constant = value};
}
analysis::LanePattern affine(const analysis::LaneOffsets& offsets) {
  analysis::LanePattern pattern{.kind = LanePatternKind::affine};
  pattern.terms.push_back({.offsets = offsets});
  return pattern;
}

std::vector<std::uint64_t> interesting(ir::Type type) {
  if (type == ir::Type::i1) return {0, 1};
  const std::uint32_t width = ir::bit_size(type);
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  if (!ir::is_float(type)) {
    std::vector<std::uint64_t> values = {0,
                                         1,
                                         2,
                                         3,
                                         7,
                                         10,
                                         31,
                                         32,
                                         33,
                                         63,
                                         64,
                                         100,
                                         127,
                                         128,
                                         255,
                                         256,
                                         0x1234,
                                         0xdeadbeef,
                                         0x123456789abcdef0};
    const std::uint64_t top = std::uint64_t{1} << (width - 1);
    for (const std::uint64_t more : {top, top - 1, top + 1, ~std::uint64_t{0}, ~std::uint64_t{1},
                                     ~std::uint64_t{9}, std::uint64_t{0xff00ff00ff00ff00}})
      values.push_back(more);
    for (std::uint64_t& value : values) value &= mask;
    return values;
  }
  std::vector<std::uint64_t> values;
  const unsigned fraction = type == ir::Type::f64   ? 52
                            : type == ir::Type::f32 ? 23
                            : type == ir::Type::f16 ? 10
                                                    : 7;
  const std::uint64_t sign = std::uint64_t{1} << (width - 1);
  const std::uint64_t infinity = (sign - 1) & ~((std::uint64_t{1} << fraction) - 1);
  const std::uint64_t one = ((infinity >> fraction) >> 1) << fraction;
  const std::uint64_t ulp = 1;
  for (const std::uint64_t positive :
       {std::uint64_t{0}, ulp, (ulp << fraction) - 1, ulp << fraction, one, one + 1, one - 1,
        one | (ulp << (fraction - 1)), one + (ulp << fraction) * 3 + 5,
        one + (ulp << (fraction - 1)) + 77 % (ulp << fraction), one - (ulp << fraction), infinity - 1,
        infinity, infinity | (ulp << (fraction - 1)), one + (ulp << fraction) * 5 + (ulp << (fraction - 2))})
    for (const std::uint64_t s : {std::uint64_t{0}, sign}) values.push_back(positive | s);
  return values;
}

namespace {

std::vector<std::vector<std::uint64_t>> combinations(const std::vector<std::vector<std::uint64_t>>& values) {
  std::vector<std::vector<std::uint64_t>> rows = {{}};
  for (const auto& choices : values) {
    std::vector<std::vector<std::uint64_t>> next;
    for (const auto& row : rows)
      for (const std::uint64_t choice : choices) {
        next.push_back(row);
        next.back().push_back(choice);
      }
    rows = std::move(next);
  }
  return rows;
}

/// A separate generator, so that a failure can be repeated.
struct Random {
  std::uint64_t state = 0x9e3779b97f4a7c15;
  std::uint64_t operator()() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }
};

std::string describe(const Operation& operation, const Machine& machine,
                     const std::vector<std::uint64_t>& row) {
  std::string text(ir::name(operation.op));
  text += "." + std::string(ir::name(operation.type)) + " on " + name_of(machine.isa) +
          (operation.result.scalar() ? " scalar" : " vector");
  for (const std::uint64_t value : row) {
    char number[32];
    std::snprintf(number, sizeof number, " %llx", static_cast<unsigned long long>(value));
    text += number;
  }
  return text;
}

void compare(const Operation& operation, const Machine& machine,
             const std::vector<std::vector<std::uint64_t>>& rows, const Reference& expected,
             const std::function<bool(std::uint64_t, std::uint64_t)>& same, std::size_t step) {
  const Compiled compiled = compile(operation, machine);
  unsigned failures = 0;
  for (std::size_t first = 0; first < rows.size() && failures < 5; first += step) {
    std::vector<Lanes> inputs(operation.inputs.size());
    for (std::size_t lane = 0; lane < 32; ++lane)
      for (std::size_t at = 0; at < inputs.size(); ++at)
        inputs[at][lane] = rows[(first + (step == 1 ? 0 : lane)) % rows.size()][at];
    const Lanes got = compiled.run(inputs)[0];
    for (std::size_t lane = 0; lane < step && failures < 5; ++lane) {
      const auto& row = rows[(first + lane) % rows.size()];
      const std::uint64_t want = expected(row);
      if (same(got[lane], want)) continue;
      ++failures;
      CAPTURE(describe(operation, machine, row));
      CAPTURE(want);
      CHECK(got[lane] == want);
    }
  }
  CHECK(failures == 0);
}

}  // namespace

void check_elementwise(const Operation& operation, const Reference& expected,
                       std::vector<std::vector<std::uint64_t>> values,
                       const std::function<bool(std::uint64_t, std::uint64_t)>& same) {
  if (values.empty())
    for (const Input& input : operation.inputs) values.push_back(interesting(input.type));
  std::vector<std::vector<std::uint64_t>> rows = combinations(values);
  Random random;
  for (unsigned extra = 0; extra < 256; ++extra) {
    rows.emplace_back();
    for (const Input& input : operation.inputs) {
      const std::uint32_t width = ir::bit_size(input.type);
      const std::uint64_t bits =
          random() & (width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1);
      rows.back().push_back(input.pattern.constant.value_or(bits));
    }
  }
  const std::function<bool(std::uint64_t, std::uint64_t)> equal = [](std::uint64_t a, std::uint64_t b) {
    return a == b;
  };
  const Isa least = isas().front(), widest = isas().back();
  for (const Isa isa : isas())
    if (!tries_a_part() || isa == widest)
      compare(operation, {.isa = isa}, rows, expected, same ? same : equal, 32);
  // Values that all threads share. Scalar code differs little between the instruction sets, and code for the
  // least one is tested on every machine.
  Operation scalar = operation;
  for (Input& input : scalar.inputs) input.pattern = uniform();
  scalar.result = uniform();
  compare(scalar, {.isa = least}, rows, expected, same ? same : equal, 1);
  if (!tries_a_part() && widest != least)
    compare(scalar, {.isa = widest}, rows, expected, same ? same : equal, 1);
}

float f32(std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
double f64(std::uint64_t bits) { return std::bit_cast<double>(bits); }
std::uint64_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

bool same_f32(std::uint64_t a, std::uint64_t b) {
  return a == b || (std::isnan(f32(a)) && std::isnan(f32(b)));
}
bool same_f64(std::uint64_t a, std::uint64_t b) {
  return a == b || (std::isnan(f64(a)) && std::isnan(f64(b)));
}
bool same_f16(std::uint64_t a, std::uint64_t b) {
  return a == b || ((a & 0x7fff) > 0x7c00 && (b & 0x7fff) > 0x7c00);
}
bool same_bf16(std::uint64_t a, std::uint64_t b) {
  return a == b || ((a & 0x7fff) > 0x7f80 && (b & 0x7fff) > 0x7f80);
}

}  // namespace quern::cpu::emit::testing
