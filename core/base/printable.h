// Text from outside (keys of a file, paths, names), fit to stand in a message.
#pragma once

#include <string>
#include <string_view>

#include <tenon/core/api.h>

namespace tenon {

// The text with every byte escaped that could end a line, move the cursor, turn the reading
// direction or is not valid UTF-8:
// "\n", "\r", "\t", or "\x1b". All else, letters of any script included, stays as it is.
TENON_API std::string printable(std::string_view text);

// The same, for text that may have several lines, such as an error's: "\n" stays.
TENON_API std::string printable_lines(std::string_view text);

// The same, and no more than the beginning of what is longer than 100 bytes.
TENON_API std::string excerpt(std::string_view text);

// How many bytes the first character of `text` takes; 0 where they are not valid UTF-8. `text` is
// not empty.
TENON_API size_t utf8_length(std::string_view text);

}  // namespace tenon
