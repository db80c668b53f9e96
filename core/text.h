// Text from outside, such as names of files, in what is printed.
#pragma once

#include <string>
#include <string_view>

#include <tenon/core/api.h>

namespace tenon {

enum class Lines { escape, keep };  // what becomes of line breaks

// Any bytes as text that a terminal shows and does not obey: control characters, and bytes that are not UTF-8, are written as \x1b.
TENON_API std::string printable(std::string_view text, Lines lines = Lines::escape);

}  // namespace tenon
