#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/value_text.h>

namespace tenon {
namespace {

// Reads an object without nesting, from the first byte to the last.
class ValueReader {
 public:
  explicit ValueReader(std::string_view text) : text_(text) {}

  CheckpointValues read() {
    CheckpointValues values;
    expect('{');
    if (!skips('}')) {
      do {
        const std::string name = quoted();
        if (values.contains(name)) fail(fmt::format("it has \"{}\" twice", printable(name)));
        expect(':');
        values[name] = value();
      } while (skips(','));
      expect('}');
    }
    skip_space();
    if (at_ != text_.size()) fail("there is something behind the values");
    return values;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw CheckpointError(
        fmt::format("its values are not readable at byte {} of {}: {}", at_, text_.size(), why));
  }
  void skip_space() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool skips(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!skips(c)) fail(fmt::format("'{}' is missing", c));
  }
  char next() {
    if (at_ == text_.size()) fail("a text does not end");
    return text_[at_++];
  }

  CheckpointValue value() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    const size_t end = std::min(text_.find_first_of(",} \t\r\n", at_), text_.size());
    const std::string_view word = text_.substr(at_, end - at_);
    if (word == "NaN") return found(std::numeric_limits<double>::quiet_NaN(), end);
    if (word == "Infinity") return found(std::numeric_limits<double>::infinity(), end);
    if (word == "-Infinity") return found(-std::numeric_limits<double>::infinity(), end);
    if (auto whole = parsed<int64_t>(word)) return found(*whole, end);
    if (auto natural = parsed<uint64_t>(word)) return found(*natural, end);
    if (auto real = parsed<double>(word)) return found(*real, end);
    fail(fmt::format("\"{}\" is neither a number nor a text", excerpt(word)));
  }
  template <class T>
  CheckpointValue found(T number, size_t end) {
    at_ = end;
    return number;
  }
  template <class T>
  static std::optional<T> parsed(std::string_view word) {
    T number{};
    const char* end = word.data() + word.size();
    // from_chars takes "inf" and "nan" as well.
    if (word.empty() || std::string_view("-0123456789").find(word[0]) == std::string_view::npos ||
        word.find_first_of("iInN") != word.npos)
      return std::nullopt;
    const auto [stop, error] = std::from_chars(word.data(), end, number);
    return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
  }

  std::string quoted() {
    expect('"');
    std::string text;
    for (char c; (c = next()) != '"';) {
      if (static_cast<unsigned char>(c) < 0x20) fail("a text has a control character");
      text += c == '\\' ? escaped() : c;
    }
    if (!is_utf8(text)) fail("a text is not valid UTF-8");
    return text;
  }
  // Only what values_to_json writes: a quote, a backslash and control characters.
  char escaped() {
    const char c = next();
    if (c == '"' || c == '\\' || c == '/') return c;
    unsigned code = 256;
    if (c == 'u' && text_.size() - at_ >= 4) {
      const char* digits = text_.data() + at_;
      if (std::from_chars(digits, digits + 4, code, 16).ptr != digits + 4) code = 256;
      at_ += 4;
    }
    if (code >= 0x80) fail("a text has an escape sequence that Tenon does not write");
    return static_cast<char>(code);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string values_to_json(const CheckpointValues& values) {
  std::string text = "{";
  for (const auto& [name, value] : values) {
    if (value.is_tensor()) continue;
    if (!is_utf8(name) || (value.is_text() && !is_utf8(value.text())))
      throw CheckpointError(fmt::format("the value \"{}\" is not valid UTF-8", printable(name)));
    text += fmt::format("{}\n{}: {}", text.size() > 1 ? "," : "", CheckpointValue(name).str(),
                        value.str());
  }
  return text + (text.size() > 1 ? "\n}" : "}");
}

CheckpointValues values_from_json(std::string_view text) { return ValueReader(text).read(); }

}  // namespace tenon
