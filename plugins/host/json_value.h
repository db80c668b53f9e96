// The JSON values of a manifest. The values of the JSON library cannot be used, because they end
// the process if there is no memory to destroy them. Private to the host.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::plugins {

struct JsonValue {
  // An integer is a number that fits into an int64_t.
  enum Kind { null, boolean, integer, number, string, array, object };

  Kind kind = null;
  int64_t whole = 0;
  std::string text{};
  std::vector<JsonValue> items{};
  std::vector<std::pair<std::string, JsonValue>> fields{};

  const char* type_name() const;
  // Returns the last field of that name, or null if there is none.
  const JsonValue* find(std::string_view name) const;
};

// Parses a text. Values that are nested more than `depth` deep are checked and left out. Throws
// Refused "not JSON: …".
JsonValue parse_json(const std::string& text, size_t depth);

}  // namespace tenon::plugins
