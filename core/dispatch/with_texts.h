// Attributes with texts of their own, where those that they have end sooner than what keeps them.
#pragma once

#include <tenon/core/dispatch/attrs.h>

namespace tenon {

// Returns the same attributes, with `keep(text)` in place of each text: a pointer that lasts.
template <class Keep>
Attrs with_texts(const Attrs& attrs, Keep&& keep) {
  Attrs kept;
  for (const Attr& a : attrs.all()) {
    const char* const name = keep(a.name);
    if (a.kind == TN_ATTR_INT)
      kept.set(name, a.i);
    else if (a.kind == TN_ATTR_BOOL)
      kept.set(name, a.i != 0);
    else if (a.kind == TN_ATTR_FLOAT)
      kept.set(name, a.f);
    else if (a.kind == TN_ATTR_INTS)
      kept.set(name, a.list());
    else if (a.hint)
      kept.set_hint(name, keep(a.s));
    else
      kept.set(name, keep(a.s));
  }
  return kept;
}

}  // namespace tenon
