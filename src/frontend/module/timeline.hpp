// SPDX-License-Identifier: Apache-2.0
// The bindings of file-level names at each moment of the import: all bindings in order, which bindings share
// memory, and what may have changed them. Nothing is evaluated here.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/syntax/text.hpp"
#include "frontend/values/value.hpp"

namespace quern::frontend {

/// A moment of the import: the number of earlier events.
using Time = std::uint32_t;
/// The moment after the import.
inline constexpr Time kImported = UINT32_MAX;

/// A line that may have changed an object.
struct Change {
  Time time = 0;
  Place place;
};

struct Binding {
  enum class Kind : std::uint8_t {
    import,
    assignment,
    augmented,
    function,
    host_class,
    host,       ///< bound to a value of Python: the target of a loop or of a `with`
    uncertain,  ///< one of several bindings; the line at `because` decides which
    deleted,
  };
  Kind kind = Kind::assignment;
  Place place;
  std::string path;       ///< path of an import
  bool member = false;    ///< `from path import name`
  std::size_t token = 0;  ///< the first token of an assignment
  Declaration* declaration = nullptr;
  Time time = 0;  ///< its value is computed with the names of that time
  Place because;
  std::string why;                      ///< effect of the line at `because`: "decides what it is"
  std::vector<const Binding*> choices;  ///< bindings between which the line decides; null if not bound
  bool evaluating = false;
  bool known = false;
  Value value;

 private:
  friend class Timeline;
  Binding* parent_ = nullptr;  ///< parent in the tree of bindings that may share memory, from `joined_` on
  Time joined_ = kImported;
  std::uint32_t rank_ = 0;
  std::vector<Change> changes_;  ///< changes of a root
};

class Timeline {
 public:
  struct Entry {
    Time time = 0;
    Binding* binding = nullptr;  ///< null if not bound
  };
  using Names = std::map<std::string, std::vector<Entry>, std::less<>>;

  Time now() const { return now_; }
  /// Binds the name from now on. The caller sets `binding.time`.
  Binding& bind(std::string_view name, Binding binding);
  /// The same for an existing binding, or for null.
  void restore(std::string_view name, Binding* binding);
  /// The binding of the name at that time, or null.
  Binding* find(std::string_view name, Time at) const;
  const Names& names() const { return names_; }

  /// Records that both may refer to the same array or list from now on.
  void share(Binding& one, Binding& other);
  /// Records a change of the object that the binding refers to; it affects all bindings that share it.
  void change(Binding& binding, Place place);
  /// The first change of the binding's object after `since` and up to `at`, or null.
  const Change* changed(const Binding& binding, Time since, Time at) const;

  /// From now on, any name may have a new value.
  void lose_all(Place place) { lost_.push_back({++now_, place}); }
  const Change* lost(Time since, Time at) const { return first(lost_, since, at); }
  /// From now on, the name may be rebound at any time.
  void expose(std::string_view name, Place place);
  const Change* exposed(std::string_view name, Time at) const;

  /// Mark for the list of names that were bound since then.
  std::size_t mark() const { return journal_.size(); }
  std::vector<std::string_view> touched_since(std::size_t mark) const;

 private:
  static const Change* first(const std::vector<Change>& changes, Time since, Time at);
  static Binding& root_of(Binding& binding);

  Time now_ = 0;
  std::deque<Binding> bindings_;
  Names names_;
  std::vector<Change> lost_;
  std::map<std::string, Change, std::less<>> exposed_;
  std::vector<std::string_view> journal_;
};

}  // namespace quern::frontend
