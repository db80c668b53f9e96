// Makes text from outside (keys of a file, paths, names) safe to print in a message.
#pragma once

#include <string>
#include <string_view>

#include <tenon/core/api.h>

namespace tenon {

// Returns the text with some bytes escaped as "\n", "\r", "\t" or "\x1b": those that could end a
// line, move the cursor or change the reading direction, and those that are not valid UTF-8.
// Everything else, including letters of any script, stays as it is.
TENON_API std::string printable(std::string_view text);

// The same for a text that may have several lines, such as an error message: "\n" stays.
TENON_API std::string printable_lines(std::string_view text);

// The same, but shows only the beginning of a text of more than 100 bytes.
TENON_API std::string excerpt(std::string_view text);

// Returns the number of bytes of the first character of `text`, or 0 if they are not valid UTF-8.
// `text` must not be empty.
TENON_API size_t utf8_length(std::string_view text);
// Whether a text is valid UTF-8 from its first byte to its last.
bool is_utf8(std::string_view text);

}  // namespace tenon
