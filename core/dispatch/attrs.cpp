#include <algorithm>
#include <string>

#include <fmt/core.h>

#include <tenon/core/dispatch/attrs.h>
#include <tenon/core/error.h>

namespace tenon {

const Attrs no_attrs;

Attr& Attrs::add(const char* name, tn_attr_kind kind) {
  if (count_ == std::size(items_))
    throw Error(fmt::format("the attribute \"{}\" is one more than an operator may have", name));
  Attr& a = items_[count_++];
  a.name = name;
  a.kind = kind;
  a.hint = false;
  a.num_ints = 0;
  a.i = 0;
  a.f = 0;
  a.s = "";
  return a;
}

Attrs& Attrs::set(const char* name, int64_t value) {
  return add(name, TN_ATTR_INT).i = value, *this;
}
Attrs& Attrs::set(const char* name, double value) {
  return add(name, TN_ATTR_FLOAT).f = value, *this;
}
Attrs& Attrs::set(const char* name, bool value) { return add(name, TN_ATTR_BOOL).i = value, *this; }
Attrs& Attrs::set(const char* name, const char* literal) {
  return add(name, TN_ATTR_STRING).s = literal, *this;
}
Attrs& Attrs::set_hint(const char* name, const char* literal) {
  Attr& a = add(name, TN_ATTR_STRING);
  a.s = literal;
  a.hint = true;
  return *this;
}
Attrs& Attrs::set(const char* name, const Shape& list) {
  Attr& a = add(name, TN_ATTR_INTS);
  a.num_ints = static_cast<uint32_t>(list.size());
  std::copy(list.begin(), list.end(), a.ints);
  return *this;
}

bool Attrs::has(std::string_view name) const {
  return std::any_of(items_, items_ + count_, [&](const Attr& a) { return name == a.name; });
}

const Attr& Attrs::at(std::string_view name, tn_attr_kind kind) const {
  for (auto& a : all())
    if (name == a.name && kind == a.kind) return a;
  throw Error(fmt::format("an operator has no attribute \"{}\"{}", name,
                          has(name) ? " of the kind that it needs" : ""));
}

}  // namespace tenon
