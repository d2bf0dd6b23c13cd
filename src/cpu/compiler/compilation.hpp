// SPDX-License-Identifier: Apache-2.0
// The data that passes read and write while one kernel is compiled from PTX to machine code.
// Thread-compatible. Not movable, since plans point into it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/code/image.hpp"
#include "cpu/cuts/plan.hpp"
#include "cpu/emit/emit.hpp"
#include "cpu/ir/ir.hpp"
#include "cpu/lower/lower.hpp"
#include "ptx/module.hpp"

namespace quern::cpu {

struct Compilation {
  /// State for the kernel `kernel_entry` of `ptx_module`, which must outlive this object.
  Compilation(const ptx::Module& ptx_module, const ptx::Function& kernel_entry, std::string_view file,
              const Specialisation& parameters)
      : ptx(&ptx_module), entry(&kernel_entry), file_name(file), specialisation(parameters) {}
  /// State that begins with finished SIMT IR: passes before Form::checked are not needed.
  Compilation(ir::Module lowered, const Specialisation& parameters)
      : specialisation(parameters), module(std::move(lowered)) {}
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;
  ~Compilation() = default;

  const ptx::Module* ptx = nullptr;
  const ptx::Function* entry = nullptr;
  std::string file_name;
  Specialisation specialisation;
  lower::CallForm calls = lower::CallForm::functions;
  bool keeps_call_form = false;  ///< for tests: choose_call_form does not change `calls`
  emit::WithSites sites = emit::WithSites::no;

  lower::Translation translation;       ///< valid for Form::builder
  ir::Module module;                    ///< from Form::simt on
  std::vector<cuts::Plan> plans;        ///< from choose_dispatch on, by function
  std::vector<ir::Location> locations;  ///< from gather_locations on
  emit::OwnedLlvmCode llvm;             ///< from Form::llvm on
  CodeImage image;                      ///< Form::image
  bool translate_again = false;         ///< set by choose_call_form: run the passes again from the first one
};

}  // namespace quern::cpu
