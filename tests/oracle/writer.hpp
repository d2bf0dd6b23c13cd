// SPDX-License-Identifier: Apache-2.0
// Internals of the kernel generator: the generated text, and the registers that statements use. Statements
// read and write %r (32 bits), %rd (64), %f, %fd and %p. They use %t, %td, %tf, %h, %w and %q as temporaries.
#pragma once

#include "generate.hpp"
#include "random.hpp"

namespace quern::oracle {

inline constexpr unsigned kR = 6, kRd = 4, kF = 4, kFd = 3, kP = 4;
/// With GenerateOptions::indices: %n, 32-bit indices, and %u, the same in all threads.
inline constexpr unsigned kN = 6, kU = 4;
/// Words in a thread's local memory, and in the table in constant memory; a power of two.
inline constexpr unsigned kStackWords = 16;
/// Bytes of a block in `meeting`: see generate_waiting.cpp.
inline constexpr unsigned kMeetingBytes = 2048;

class Writer {
 public:
  Writer(std::uint64_t seed, const GenerateOptions& given) : random(seed), options(given) {}

  void line(const std::string& instruction) { text += "\t" + instruction + ";\n"; }
  void label(unsigned number) { text += Text{"$L{}:\n", number}; }
  unsigned new_label() { return labels++; }

  std::string r() { return Text{"%r{}", random.below(kR)}; }
  std::string rd() { return Text{"%rd{}", random.below(kRd)}; }
  std::string f() { return Text{"%f{}", random.below(kF)}; }
  std::string fd() { return Text{"%fd{}", random.below(kFd)}; }
  std::string p() { return Text{"%p{}", random.below(kP)}; }
  /// "" or "@!%p1 "
  std::string guard() {
    return random.chance(15) ? Text{"@{}{} ", random.chance(50) ? "!" : "", p()} : Text{""};
  }
  template <std::size_t N>
  std::string pick(const char* const (&list)[N]) {
    return random.pick(list);
  }

  std::string constant32();
  std::string constant64();
  std::string r_or_constant() { return random.chance(25) ? constant32() : r(); }
  std::string rd_or_constant() { return random.chance(20) ? constant64() : rd(); }
  std::string f_or_constant();
  std::string fd_or_constant();
  /// A shift amount or a position: a constant below `limit`, or a register.
  std::string amount(unsigned limit) { return random.chance(50) ? std::to_string(random.below(limit)) : r(); }

  Random random;
  const GenerateOptions& options;
  std::string text;
  unsigned threads = 1;  ///< in a block
  unsigned labels = 0;
  unsigned loops = 0;
  unsigned chains = 0;
  bool uses_stack = false;  ///< local memory
  /// If not 0, all accesses to local memory are of 4 or of 8 bytes, and no address of it is generic.
  unsigned stack_element = 0;
  bool together = true;  ///< no thread has ended yet
};

// Each emits one statement, for any position:
void integer32(Writer& w);
void integer64(Writer& w);
void short_integer(Writer& w);
void carry_chain(Writer& w);
void fields(Writer& w);
void float32(Writer& w);
void float64(Writer& w);
void half(Writer& w);
void conversion(Writer& w);
void predicate(Writer& w);
void load(Writer& w);
void own_memory(Writer& w);
void own_atomic(Writer& w);
void accumulate(Writer& w);
void call(Writer& w);
// ... and for positions that all threads of the block reach together:
void shuffle(Writer& w);
void vote(Writer& w);
void reduce(Writer& w);
void exchange(Writer& w);
void shared_atomic(Writer& w);
void barrier_reduce(Writer& w);
// With GenerateOptions::indices: values of %n and %u, whose data are at `spare` in `in`; a statement for any
// position; and the end, which adds %n to %r.
struct IndexDivision {
  std::string divisor, result;  ///< registers, or a constant divisor
};
/// A quotient or a remainder, or both. `around`: often of numbers that are negative in some warps.
IndexDivision divide(Writer& w, bool around);
/// Compares the result; the predicate.
std::string ask(Writer& w, const IndexDivision& division);
/// Corrects the result, or chooses by it.
void correct(Writer& w, const IndexDivision& division, const std::string& answer);
void begin_indices(Writer& w, std::uint64_t spare);
void index(Writer& w);
void end_indices(Writer& w);
// With GenerateOptions::waiting: `lock` for any position,
void lock(Writer& w);
// ... and for positions at which all threads of the block are together:
void read_sum(Writer& w);
void chain(Writer& w);
void produce_and_consume(Writer& w);

}  // namespace quern::oracle
