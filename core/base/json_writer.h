// Writes a JSON text from its first byte to its last; what is written holds no memory but the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tenon {

class JsonWriter {
 public:
  // {body()}, in which each value has a key before it, and [body()].
  template <class Body>
  JsonWriter& object(Body&& body) {
    return nested('{', '}', body);
  }
  template <class Body>
  JsonWriter& array(Body&& body) {
    return nested('[', ']', body);
  }
  // The items of a list, each written by each(item).
  template <class Items, class Each>
  JsonWriter& array_of(const Items& items, Each&& each) {
    return array([&] {
      for (auto& item : items) each(item);
    });
  }

  // Throw a ValueError for a text that is not UTF-8.
  JsonWriter& key(std::string_view name);
  JsonWriter& text(std::string_view value);

  JsonWriter& number(int64_t value);
  JsonWriter& natural(uint64_t value);
  JsonWriter& boolean(bool value) { return word(value ? "true" : "false"); }
  JsonWriter& null() { return word("null"); }

  std::string take() { return std::move(text_); }

 private:
  template <class Body>
  JsonWriter& nested(char open, char close, Body&& body) {
    separate();
    text_ += open;
    body();
    text_ += close;
    return *this;
  }
  JsonWriter& word(std::string_view value);
  void separate();  // a comma, where a value stands before

  std::string text_;
};

}  // namespace tenon
