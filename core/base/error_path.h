// Errors that say in which module they were thrown. It is implemented in module_path.cpp.
#pragma once

#include <string>

#include <tenon/core/error.h>

namespace tenon {

// Adds the module of this thread to the first line of an error that does not say where it was
// thrown, unless it is one of earlier work.
TENON_API void add_path(Error& error);
// Adds a text to the end of the first line of an error; the lines below it hold details.
TENON_API void add_to_first_line(Error& error, const std::string& addition);

}  // namespace tenon
