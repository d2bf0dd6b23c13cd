// SPDX-License-Identifier: Apache-2.0
#include "ptx/isa.hpp"

#include "ptx/word_index.hpp"

namespace quern::ptx {
namespace {

struct TypeRow {
  std::uint16_t bits;
  TypeKind kind;
};
constexpr auto kTypeRows = std::to_array<TypeRow>({
    {0, TypeKind::none},
#define QUERN_PTX_TYPE(name, text, bits, kind) {bits, TypeKind::kind},
#include "ptx/words.def"
});
constexpr WordIndex kTypes(std::to_array<std::string_view>({
    "",
#define QUERN_PTX_TYPE(name, text, bits, kind) text,
#include "ptx/words.def"
}));
constexpr auto kSpaces = std::to_array<std::string_view>({
    "",
#define QUERN_PTX_SPACE(name, text) text,
#include "ptx/words.def"
});
constexpr WordIndex kModifiers(std::to_array<std::string_view>({
#define QUERN_PTX_MODIFIER(name, text) text,
#include "ptx/words.def"
}));
constexpr WordIndex kSpecials(std::to_array<std::string_view>({
#define QUERN_PTX_SPECIAL(name, text, type) text,
#include "ptx/words.def"
}));
constexpr auto kSpecialTypes = std::to_array<Type>({
#define QUERN_PTX_SPECIAL(name, text, type) Type::type,
#include "ptx/words.def"
});
constexpr WordIndex kOpcodes(std::to_array<std::string_view>({
#define QUERN_PTX_OPCODE(name, text) text,
#include "ptx/isa.def"
}));

template <class Enum, std::size_t N>
std::optional<Enum> lookup(const WordIndex<N>& index, std::string_view word) noexcept {
  const std::optional<std::size_t> found = index.find(word);
  if (!found) return std::nullopt;
  return static_cast<Enum>(*found);
}

template <class Enum>
constexpr std::size_t index_of(Enum value) noexcept {
  return static_cast<std::size_t>(value);
}

}  // namespace

std::uint32_t bit_size(Type type) noexcept { return kTypeRows[index_of(type)].bits; }
std::uint32_t byte_size(Type type) noexcept { return (bit_size(type) + 7) / 8; }
TypeKind kind(Type type) noexcept { return kTypeRows[index_of(type)].kind; }
std::string_view name(Type type) noexcept { return kTypes[index_of(type)]; }
std::optional<Type> type_named(std::string_view word) noexcept {
  if (word.empty()) return std::nullopt;
  return lookup<Type>(kTypes, word);
}

std::string_view name(Space space) noexcept { return kSpaces[index_of(space)]; }

std::string_view name(Modifier modifier) noexcept { return kModifiers[index_of(modifier)]; }
std::optional<Modifier> modifier_named(std::string_view word) noexcept {
  return lookup<Modifier>(kModifiers, word);
}

std::string_view name(SpecialRegister which) noexcept { return kSpecials[index_of(which)]; }
Type type(SpecialRegister which) noexcept { return kSpecialTypes[index_of(which)]; }
std::optional<SpecialRegister> special_register_named(std::string_view word) noexcept {
  return lookup<SpecialRegister>(kSpecials, word);
}

std::string_view name(Opcode opcode) noexcept { return kOpcodes[index_of(opcode)]; }
std::optional<Opcode> opcode_named(std::string_view word) noexcept { return lookup<Opcode>(kOpcodes, word); }

}  // namespace quern::ptx
