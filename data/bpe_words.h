// Splits text into the words inside of which pairs are merged.
#pragma once

#include <cstddef>
#include <string_view>

namespace tenon::data {

// Returns the length of the first word of a text that is not empty, as GPT-2's pattern has it:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// A byte that is not UTF-8 is a sign.
size_t word_length(std::string_view text);

}  // namespace tenon::data
