// Checks whether a class that names its fields itself left one out, which would then be neither
// trained nor saved.
#pragma once

#include <tenon/modules/fields.h>

namespace tenon::nn {

class ModuleScope;
namespace detail {
class CallWatcher;
}

// Throws a ValueError if the object contains a parameter or buffer that its fields() does not name,
// and logs a warning if it contains such a std::vector whose elements hold parameters. Parameters
// that are absent or tied to a named one need no name. A type is checked once; the check is
// repeated only while the objects seen so far lack a parameter that another object of the type may
// have.
void require_all_listed(ModuleRef module);

// Called when `parent` calls the module `child`, which it does not list. Throws a ValueError if the
// child is part of the parent's object, whose fields() then left it out. Otherwise logs a warning,
// once for each pair of types, if the parent names its fields itself and the child has parameters
// to train.
void require_listed_child(ModuleRef parent, ModuleRef child);

// Where this thread is among calls of modules, and how a thread that computes a part for it goes on
// there, until it ends.
struct CallPlace {
  const ModuleScope* innermost;
  detail::CallWatcher* watching;
};
CallPlace current_call();
void continue_call(CallPlace place);

}  // namespace tenon::nn
