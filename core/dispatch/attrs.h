// The arguments of an operator that are not tensors: attributes, for which a plan is made, and
// numbers, which can differ in each run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include <tenon/core/shape.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

// A static argument. `name` and `s` point to literals.
struct Attr {
  const char* name;
  tn_attr_kind kind;
  bool hint;  // a permission, without which a plugin computes as well
  uint32_t num_ints;
  int64_t i;
  double f;
  const char* s;
  int64_t ints[Shape::max_rank];

  Shape list() const { return Shape(std::span<const int64_t>(ints, num_ints)); }
};

// Up to eight attributes, stored without allocation. Write `Attrs().set("stride", Shape{1,
// 1}).set("groups", int64_t{1})`.
class Attrs {
 public:
  Attrs() {}
  Attrs(const Attrs& o) : count_(o.count_) {
    std::copy_n(o.items_, count_, items_);
  }  // copies only the used slots
  Attrs& operator=(const Attrs& o) {
    count_ = o.count_;
    std::copy_n(o.items_, count_, items_);
    return *this;
  }
  Attrs& set(const char* name, int64_t value);
  Attrs& set(const char* name, int value) { return set(name, static_cast<int64_t>(value)); }
  Attrs& set(const char* name, double value);
  Attrs& set(const char* name, bool value);
  Attrs& set(const char* name, const char* literal);
  Attrs& set(const char* name, const Shape& list);
  // A plugin that does not know it is asked again without it.
  Attrs& set_hint(const char* name, const char* literal);

  // These throw an Error for one that is missing or of another kind.
  int64_t get_int(std::string_view name) const { return at(name, TN_ATTR_INT).i; }
  double get_float(std::string_view name) const { return at(name, TN_ATTR_FLOAT).f; }
  bool get_bool(std::string_view name) const { return at(name, TN_ATTR_BOOL).i != 0; }
  std::string_view get_string(std::string_view name) const { return at(name, TN_ATTR_STRING).s; }
  Shape get_list(std::string_view name) const { return at(name, TN_ATTR_INTS).list(); }
  bool has(std::string_view name) const;

  std::span<const Attr> all() const { return {items_, count_}; }

 private:
  const Attr& at(std::string_view name, tn_attr_kind kind) const;
  Attr& add(const char* name, tn_attr_kind kind);

  uint32_t count_ = 0;
  Attr items_[8];  // left uninitialised on purpose: most operators have none
};
extern const Attrs no_attrs;

// A number, which can differ in each run.
struct Scalar {
  tn_scalar value;  // the only member, because plugins get arrays of scalars without conversion
  Scalar() : value{0.0} {}
  Scalar(double f) : value{.f = f} {}
  static Scalar integer(int64_t i) {
    Scalar s;
    s.value.i = i;
    return s;
  }
};
static_assert(sizeof(Scalar) == sizeof(tn_scalar));

}  // namespace tenon
