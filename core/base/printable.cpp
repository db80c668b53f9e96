#include <cstdio>

#include <fmt/core.h>

#include <tenon/core/base/printable.h>

namespace tenon {
namespace {

struct Character {
  size_t bytes;  // 0 if they are not valid UTF-8
  char32_t code;
};

// Returns the first character of `text`. Overlong forms, surrogates and values above U+10FFFF are
// not valid.
Character decode(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {1, lead};
  const size_t bytes = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (bytes == 0 || bytes > text.size()) return {0, 0};
  char32_t code = lead & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {0, 0};
    code = code << 6 | (next & 0x3F);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < smallest[bytes] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
    return {0, 0};
  return {bytes, code};
}

// Returns false for control characters, line and paragraph separators, and marks that change the
// reading direction.
bool is_harmless(char32_t c) {
  return c >= 0x20 && !(c >= 0x7F && c <= 0x9F) && c != 0x200E && c != 0x200F &&
         !(c >= 0x2028 && c <= 0x202E) && !(c >= 0x2066 && c <= 0x2069) && c != 0xFEFF;
}

void append_escaped(std::string& to, char c) {
  switch (c) {
    case '\n':
      to += "\\n";
      break;
    case '\r':
      to += "\\r";
      break;
    case '\t':
      to += "\\t";
      break;
    default:
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(c));
      to += hex;
  }
}

}  // namespace

std::string excerpt(std::string_view text) {
  constexpr size_t most = 100;
  return text.size() <= most
             ? printable(text)
             : fmt::format("{}… ({} bytes)", printable(text.substr(0, most)), text.size());
}

size_t utf8_length(std::string_view text) { return decode(text).bytes; }

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = utf8_length(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
    shown += printable(text.substr(0, end)) + "\n";
  return shown + printable(text);
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const auto [bytes, code] = decode(text);
    if (bytes != 0 && is_harmless(code)) {
      shown += text.substr(0, bytes);
      text.remove_prefix(bytes);
    } else {
      append_escaped(shown, text[0]);  // the rest of a longer character is escaped byte by byte
      text.remove_prefix(1);
    }
  }
  return shown;
}

}  // namespace tenon
