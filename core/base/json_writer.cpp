#include <fmt/format.h>

#include <tenon/core/base/json_writer.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>

namespace tenon {

namespace {

void append_in_json(std::string& to, char c) {
  if (c == '"' || c == '\\') {
    to += '\\';
    to += c;
  } else if (static_cast<unsigned char>(c) < 0x20) {
    to += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
  } else {
    to += c;
  }
}

}  // namespace

void JsonWriter::separate() {
  if (!text_.empty() && text_.back() != '[' && text_.back() != '{' && text_.back() != ':')
    text_ += ',';
}

JsonWriter& JsonWriter::word(std::string_view value) {
  separate();
  text_ += value;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  text(name);
  text_ += ':';
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) {
  if (!is_utf8(value)) throw ValueError(fmt::format("\"{}\" is not UTF-8", excerpt(value)));
  separate();
  text_ += '"';
  for (const char c : value) append_in_json(text_, c);
  text_ += '"';
  return *this;
}

JsonWriter& JsonWriter::number(int64_t value) {
  separate();
  text_ += fmt::format("{}", value);
  return *this;
}

JsonWriter& JsonWriter::natural(uint64_t value) {
  separate();
  text_ += fmt::format("{}", value);
  return *this;
}

}  // namespace tenon
