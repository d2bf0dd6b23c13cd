// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "frontend/analyse/infer.hpp"

namespace quern::frontend {

/// The types of subscripts: elements, views, items of tuples, fields of records.
class IndexTypes : private InferenceContext {
 public:
  explicit IndexTypes(Inference& inference) : InferenceContext(inference.context()), inference_(inference) {}

  Type subscript(const Expr& expr);
  /// The type of a single slice a[i:j:k].
  Type slice(const Expr& expr);
  Type record_field(Type record, std::string_view field, Place place);
  /// The type of a.x for an array of records: a view of that field of each record.
  Type field_view(Type array, const Field& field, Place place);

 private:
  Type tuple_item(const Expr& expr, Type base);
  Type tuple_part(const Expr& expr, Type base);
  Type indexed(Type array, const Expr& index);
  Type index_type(Type array, const std::vector<const Expr*>& indices, Place place);
  bool keeps_order(const Expr& index, bool at_fast_end) const;
  char view_layout(Type array, std::vector<const Expr*> left, std::vector<const Expr*> right) const;

  Inference& inference_;
};

}  // namespace quern::frontend
