// Messages with values in them: text("dim {} of a tensor of {} dimensions", dim, rank).
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#pragma GCC visibility push(hidden)

namespace tenon::sdk {

// A literal with a "{}" for each value; another number of them does not compile.
template <class... Values>
class TextFormat {
 public:
  // Checks the literal while it is compiled.
  consteval TextFormat(const char* format) : format_(format) {
    size_t places = 0;
    for (size_t i = 0; i + 1 < format_.size(); ++i) places += format_.substr(i, 2) == "{}";
    if (places != sizeof...(Values)) throw "as many values are needed as there are {}";
  }
  // Returns the literal.
  std::string_view view() const { return format_; }

 private:
  std::string_view format_;
};

namespace detail {
inline void append(std::string& to, std::string_view value) { to += value; }
void append(std::string& to, std::integral auto value) {
  char digits[24];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}
}  // namespace detail

// Returns the format with the values, strings and integers, in the place of its "{}", one after the
// other.
template <class... Values>
std::string text(TextFormat<std::type_identity_t<Values>...> format, const Values&... values) {
  std::string result;
  std::string_view rest = format.view();
  [[maybe_unused]] auto put = [&](const auto& value) {
    const size_t place = rest.find("{}");
    result += rest.substr(0, place);
    detail::append(result, value);
    rest.remove_prefix(place + 2);
  };
  (put(values), ...);
  return result += rest;
}

}  // namespace tenon::sdk

#pragma GCC visibility pop
