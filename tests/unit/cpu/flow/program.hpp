// SPDX-License-Identifier: Apache-2.0
// Random structured programs, each in two forms: SIMT IR, and a direct evaluation thread by thread on the
// host. They share only the syntax tree.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "cpu/ir/ir.hpp"
#include "harness.hpp"

namespace quern::cpu::test {

struct Expression {
  enum class Kind {
    constant,
    variable,
    flag,
    tid,
    linear_tid,
    ctaid,
    parameter,
    add,
    sub,
    mul,
    and_,
    xor_,
    shift,
    choose,
    element,
    block_element,
    widen_signed,
    widen_unsigned
  };
  Kind kind = Kind::constant;
  std::uint32_t number = 0;  ///< the constant; index of the variable, flag or dimension
  std::vector<Expression> operands;
};

struct Statement {
  enum class Kind {
    assign,    ///< variables[number] = expression
    compare,   ///< flags[number] = expression < other (unsigned)
    branch,    ///< if (expression < other) body else otherwise
    loop,      ///< variables[number] counts from 0; while (count < expression % 7): body
    pick,      ///< expression % 3: 0 body, 1 otherwise, 2 nothing
    leave,     ///< in a loop: if (expression < other) break
    finish,    ///< if (expression < other) return
    exchange,  ///< all threads: shared[thread] = expression; barrier; variables[number] = shared[(thread +
               ///< other) % threads]; barrier
    count,     ///< all threads: variables[number] = lanes of the block (not returned) with expression < other
    uniform_loop,  ///< all threads: as loop, but the limit is a constant
  };
  Kind kind = Kind::assign;
  std::uint32_t number = 0;
  Expression expression;
  Expression other;
  std::vector<Statement> body;
  std::vector<Statement> otherwise;
};

inline constexpr std::uint32_t kVariables = 5;
inline constexpr std::uint32_t kFlags = 2;
inline constexpr std::uint32_t kTableWords = 2048;

struct Program {
  std::vector<Statement> statements;
  bool shares = false;  ///< has exchange or count
};

struct Shape3 {
  Extents block{};
  Extents grid{};
};

Program random_program(std::mt19937& random, bool shares);

/// For the log of a failing test.
std::string to_text(const Program& program);

/// Parameters: out (one word for each thread), table (kTableWords words), number.
ir::Module to_ir(const Program& program, const Extents& block);

/// The word that each thread stores, by block * threads + thread; 0 if it stores nothing.
std::vector<std::uint32_t> evaluate(const Program& program, const Shape3& shape,
                                    const std::vector<std::uint32_t>& table, std::uint32_t number);

}  // namespace quern::cpu::test
