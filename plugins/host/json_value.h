// JSON as a manifest holds it. Not the parser's own values: those end the process where there is no
// memory to destroy them. Private to the host.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::plugins {

struct JsonValue {
  enum Kind {
    null,
    boolean,
    integer,
    number,
    string,
    array,
    object
  };  // integer: one that an int64_t holds

  Kind kind = null;
  int64_t whole = 0;
  std::string text{};
  std::vector<JsonValue> items{};
  std::vector<std::pair<std::string, JsonValue>> fields{};

  const char* type_name() const;
  // The last of that name; null where there is none.
  const JsonValue* find(std::string_view name) const;
};

// What lies deeper than `depth` values inside each other is checked for its form, and left out.
// Refused "not JSON: …".
JsonValue parse_json(const std::string& text, size_t depth);

}  // namespace tenon::plugins
