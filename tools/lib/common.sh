# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts in tools/. Sourced by bash; sets ROOT and changes to it.
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
STATE="$ROOT/.quern"

say() { printf '%s\n' "$*" >&2; }
die() {
  say "${0##*/}: $*"
  exit 1
}

# Options that build/ is configured with; tools/run and tools/test share it, so that one does not rebuild the other's work. -O1 builds in four
# fifths of the time of -O2, which the check with clang, the benchmarks and installations use.
BUILD_OPTIONS=(-Doptimization=1 -Ddebug=false)

# The headers that tools/setup found, as a meson option.
toolkit_option() { sed -n 's/^headers /-Dtoolkit_include=/p' "$STATE/toolkit-${QUERN_HIDE_TOOLKIT:-0}" 2>/dev/null || true; }

# Clang 19 and its linker instead of the default compiler, through ccache where that is installed: meson leaves a named compiler as it is.
use_clang() {
  local through=""
  command -v ccache >/dev/null && through="ccache "
  export CC="${through}clang-19" CXX="${through}clang++-19" CC_LD=lld CXX_LD=lld
}

# configure DIRECTORY OPTION...: sets up or re-configures a build directory if it does not have these options yet. What the
# toolkit search found is part of them, so that hiding the toolkit takes effect.
configure() {
  local directory="$1" log wanted toolkit
  log="$STATE/configure-${directory##*/}.log"
  shift
  toolkit="$(toolkit_option)"
  set -- "$@" ${toolkit:+"$toolkit"}
  wanted="$* hide=${QUERN_HIDE_TOOLKIT:-0} cuda=${CUDA_HOME:-}:${CUDA_PATH:-} cxx=${CXX:-}"
  if [[ -f "$directory/build.ninja" && "$(cat "$directory/.quern-options" 2>/dev/null)" == "$wanted" ]]; then return; fi
  local how=()
  [[ -f "$directory/build.ninja" ]] && how=(--reconfigure)
  say "configuring ${directory#"$ROOT"/}"
  if ! meson setup "${how[@]}" "$directory" "$ROOT" "$@" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    die "meson could not configure $directory; the whole log is ${log#"$ROOT"/}"
  fi
  printf '%s' "$wanted" >"$directory/.quern-options"
}

# build DIRECTORY [TARGET...]: quiet unless it fails.
build() {
  local directory="$1" log
  log="$STATE/build-${directory##*/}.log"
  shift
  if ninja -C "$directory" -n "$@" 2>/dev/null | grep -q 'no work to do'; then return; fi
  say "building ${directory#"$ROOT"/}"
  if ! ninja -C "$directory" "$@" >"$log" 2>&1; then
    grep -aE 'error:|FAILED' "$log" | head -n 40 >&2 || true
    die "the build failed; the whole log is ${log#"$ROOT"/}"
  fi
}

# ccache may keep results of compilations with a precompiled header. It learns the included files from the compiler instead of running the
# preprocessor first, which takes 5 to 12 % of the time of a build without cached results.
export CCACHE_DEPEND="${CCACHE_DEPEND:-1}"
export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}"

# The path that documentation uses for the program.
link_program() {
  local directory="$1"
  [[ -e "$directory/quern" && ! -L "$directory/quern" ]] && return
  [[ -x "$directory/tools/quern/quern" ]] && ln -sfn tools/quern/quern "$directory/quern"
  return 0
}

# Results of earlier runs are not used here. tools/run is for users.
[[ "${0##*/}" == run ]] || export QUERN_CACHE=0

mkdir -p "$STATE"
cd "$ROOT"
