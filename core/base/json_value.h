// The values of a JSON text. Those of the JSON library cannot be used, because they end the process
// if there is no memory to destroy them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon {

class JsonValue {
 public:
  using Items = std::vector<JsonValue>;
  using Fields = std::vector<std::pair<std::string, JsonValue>>;

  // An integer is a whole number that fits into an int64_t, a natural one a larger one that fits
  // into a uint64_t. What other numbers are is not kept.
  enum Kind : uint8_t { null, boolean, integer, natural, number, string, array, object };

  JsonValue() = default;
  explicit JsonValue(Kind kind) : kind_(kind) {
    if (kind == array) held_ = Items();
    if (kind == object) held_ = Fields();
  }
  explicit JsonValue(bool truth) : kind_(boolean), held_(uint64_t{truth}) {}
  explicit JsonValue(int64_t n) : kind_(integer), held_(static_cast<uint64_t>(n)) {}
  explicit JsonValue(uint64_t n) : kind_(n >> 63 ? natural : integer), held_(n) {}
  explicit JsonValue(std::string text) : kind_(string), held_(std::move(text)) {}

  Kind kind() const { return kind_; }
  const char* type_name() const;

  // Return what a value of that kind holds; throw std::bad_variant_access for another kind.
  bool truth() const { return std::get<uint64_t>(held_) != 0; }
  int64_t whole() const { return static_cast<int64_t>(std::get<uint64_t>(held_)); }
  uint64_t bits() const { return std::get<uint64_t>(held_); }  // of an integer or a natural number
  const std::string& text() const { return std::get<std::string>(held_); }
  const Items& items() const { return std::get<Items>(held_); }
  Items& items() { return std::get<Items>(held_); }
  const Fields& fields() const { return std::get<Fields>(held_); }
  Fields& fields() { return std::get<Fields>(held_); }

  // Returns an object's last field of that name, or null if there is none.
  const JsonValue* find(std::string_view name) const;

 private:
  Kind kind_ = null;
  std::variant<uint64_t, std::string, Items, Fields> held_;
};

// Parses a text. Values that are nested more than `depth` deep are checked and left out. Throws a
// ValueError "not JSON: …".
JsonValue parse_json(std::string_view text, size_t depth);

}  // namespace tenon
