// Arguments that are sizes: a number, or a list with one for each dimension.
#pragma once

#include <vector>

#include <tenon/conformance/case.h>
#include <tenon/core/pair.h>

namespace tenon::conformance {

// Leaves the size as it is where the argument is absent.
inline void read_size(const json& a, const char* name, Single& size) {
  if (a.contains(name)) size = shape_of(a.at(name))[0];
}
inline void read_size(const json& a, const char* name, Pair& size) {
  if (!a.contains(name)) return;
  const Shape n = shape_of(a.at(name));
  size = n.size() == 1 ? Pair(n[0]) : Pair(n[0], n[1]);
}
inline void read_size(const json& a, const char* name, Triple& size) {
  if (!a.contains(name)) return;
  const Shape n = shape_of(a.at(name));
  size = n.size() == 1 ? Triple(n[0]) : Triple(n[0], n[1], n[2]);
}

template <class Size>
Size size_of(const json& a, const char* name, Size absent) {
  read_size(a, name, absent);
  return absent;
}

// Each of these arguments with each input.
inline std::vector<Variant> every(std::initializer_list<const char*> args,
                                  const std::vector<In>& inputs) {
  std::vector<Variant> variants;
  for (const char* a : args)
    for (auto& in : inputs) variants.push_back({a, {in}});
  return variants;
}

}  // namespace tenon::conformance
