// SPDX-License-Identifier: Apache-2.0
// The vocabulary of PTX, expanded from the tables: opcodes and instruction forms (isa.def), modifiers, types,
// state spaces, special registers (words.def). The C++ name is the PTX word, with these changes: a C++
// keyword gets a trailing underscore (and_, or_, const_), a leading digit gets a "_" before it (2d -> _2d),
// and "::" and "." become "_" (shared::cta -> shared_cta, %tid.x -> tid_x).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace quern::ptx {

inline constexpr std::uint16_t kNoForm = 0xffff;

enum class Type : std::uint8_t {
  none,
#define QUERN_PTX_TYPE(name, text, bits, kind) name,
#include "ptx/words.def"
};

/// The interpretation of a Type's bits.
enum class TypeKind : std::uint8_t { none, predicate, bits, unsigned_, signed_, floating, packed, opaque };

std::uint32_t bit_size(Type type) noexcept;   ///< 1 for pred, 32 for f32 and f16x2, 0 for none
std::uint32_t byte_size(Type type) noexcept;  ///< bits rounded up to bytes
TypeKind kind(Type type) noexcept;
std::string_view name(Type type) noexcept;                  ///< "f32"
std::optional<Type> type_named(std::string_view) noexcept;  ///< without the dot

enum class Space : std::uint8_t {
  none,
#define QUERN_PTX_SPACE(name, text) name,
#include "ptx/words.def"
};
std::string_view name(Space space) noexcept;

enum class Modifier : std::uint16_t {
#define QUERN_PTX_MODIFIER(name, text) name,
#include "ptx/words.def"
};
inline constexpr std::size_t kModifierCount = 0
#define QUERN_PTX_MODIFIER(name, text) +1
#include "ptx/words.def"
    ;
std::string_view name(Modifier modifier) noexcept;  ///< "shared::cta", without the dot
std::optional<Modifier> modifier_named(std::string_view) noexcept;

enum class SpecialRegister : std::uint8_t {
#define QUERN_PTX_SPECIAL(name, text, type) name,
#include "ptx/words.def"
};
std::string_view name(SpecialRegister which) noexcept;  ///< "%tid.x"
Type type(SpecialRegister which) noexcept;
std::optional<SpecialRegister> special_register_named(std::string_view) noexcept;

enum class Opcode : std::uint16_t {
#define QUERN_PTX_OPCODE(name, text) name,
#include "ptx/isa.def"
};
std::string_view name(Opcode opcode) noexcept;
std::optional<Opcode> opcode_named(std::string_view) noexcept;

}  // namespace quern::ptx
