#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include <tenon/core/base/printable.h>
#include <tenon/data/bpe_words.h>
#include <tenon/data/unicode_tables.h>

namespace tenon::data {
namespace {

enum class Kind { space, letter, number, sign };

// Where each run of a table of alternating lengths ends.
template <size_t N>
constexpr std::array<uint32_t, N> ends_of(const uint32_t (&lengths)[N]) {
  std::array<uint32_t, N> ends{};
  for (size_t i = 0; i < N; ++i) ends[i] = lengths[i] + (i ? ends[i - 1] : 0);
  return ends;
}
constexpr auto kLetterEnds = ends_of(kLetters);
constexpr auto kNumberEnds = ends_of(kNumbers);

// A code point is in the table if its run has an odd number.
bool is_in(std::span<const uint32_t> ends, uint32_t code) {
  const auto run = std::upper_bound(ends.begin(), ends.end(), code);
  return run != ends.end() && (run - ends.begin()) % 2 != 0;
}

bool is_space_code(uint32_t code) {
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

struct Character {
  size_t length;
  Kind kind;
};

Character character_at(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) {
    const unsigned char lower = byte | 0x20;
    if (lower >= 'a' && lower <= 'z') return {1, Kind::letter};
    if (byte >= '0' && byte <= '9') return {1, Kind::number};
    return {1, byte == ' ' || (byte >= '\t' && byte <= '\r') ? Kind::space : Kind::sign};
  }
  const size_t length = utf8_length(text.substr(at));
  if (length == 0) return {1, Kind::sign};
  uint32_t code = byte & (0x7F >> length);
  for (size_t i = 1; i < length; ++i)
    code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3F);
  if (is_space_code(code)) return {length, Kind::space};
  if (is_in(kLetterEnds, code)) return {length, Kind::letter};
  return {length, is_in(kNumberEnds, code) ? Kind::number : Kind::sign};
}

// Returns where the characters of this kind end.
size_t end_of(std::string_view text, size_t at, Kind kind) {
  while (at < text.size()) {
    const Character next = character_at(text, at);
    if (next.kind != kind) break;
    at += next.length;
  }
  return at;
}

}  // namespace

size_t word_length(std::string_view text) {
  for (std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending)) return ending.size();
  const Character first = character_at(text, 0);
  if (first.kind != Kind::space) return end_of(text, 0, first.kind);
  if (text[0] == ' ' && text.size() > 1) {
    const Kind next = character_at(text, 1).kind;
    if (next != Kind::space) return end_of(text, 1, next);
  }
  // Spaces, but the last one belongs to what comes behind them.
  size_t end = 0, last = 0;
  while (end < text.size()) {
    const Character next = character_at(text, end);
    if (next.kind != Kind::space) break;
    last = end;
    end += next.length;
  }
  return end == text.size() || last == 0 ? end : last;
}

}  // namespace tenon::data
