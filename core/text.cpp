#include <tenon/core/text.h>

#include <cstddef>
#include <cstdint>

namespace tenon {

namespace {

// Bytes of the UTF-8 character at the start of `text`; 0 where there is none, or a control character: U+0000 to U+001F and U+007F
// to U+009F, among which are the escape characters of terminals. The table of well-formed sequences is Unicode's (3-7).
size_t character(std::string_view text) {
  auto byte = [&](size_t i) -> unsigned { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto follows = [&](size_t i, unsigned low = 0x80, unsigned high = 0xBF) { return byte(i) >= low && byte(i) <= high; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7F ? 1 : 0;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  if (lead < 0xE0) return follows(1, lead == 0xC2 ? 0xA0 : 0x80) ? 2 : 0;
  if (lead < 0xF0) return follows(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF) && follows(2) ? 3 : 0;
  return follows(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF) && follows(2) && follows(3) ? 4 : 0;
}

}  // namespace

std::string printable(std::string_view text, Lines lines) {
  constexpr char digits[] = "0123456789abcdef";
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    size_t bytes = character(text);
    if (!bytes && text[0] == '\n' && lines == Lines::keep) bytes = 1;
    if (bytes) {
      shown += text.substr(0, bytes);
    } else {
      const auto byte = static_cast<unsigned char>(text[0]);
      shown += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      bytes = 1;
    }
    text.remove_prefix(bytes);
  }
  return shown;
}

}  // namespace tenon
