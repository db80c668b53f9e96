// Whether a class that names its fields itself left one out, which would then be neither trained
// nor saved. Not installed.
#pragma once

#include <tenon/modules/fields.h>

namespace tenon::nn {

// ValueError where a parameter or buffer lies in the module and fields() does not name it; a
// warning where a std::vector does whose elements hold parameters. Absent parameters, and those
// that are tied to what is named, need no name. Looks once at each type, or again and again while
// what it looks at lacks a parameter, which another object of the type may have.
void require_all_listed(ModuleRef module);

// `child`, which is not below `parent`, is called by it. ValueError where it lies inside `parent`
// or a module of it, which then left it out; a warning, once for each pair of types, where `parent`
// names its fields itself and the child is to be trained.
void require_listed_child(ModuleRef parent, ModuleRef child);

}  // namespace tenon::nn
