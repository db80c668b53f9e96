#include <nlohmann/json.hpp>

#include <tenon/core/base/json_value.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>

namespace tenon {

namespace {

using nlohmann::json;

// The message of the parser quotes the text on which it failed, which may be long and contain any
// bytes.
std::string shown(const char* message) {
  constexpr size_t most = 200;
  std::string text = printable(message);
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// Receives the values as they are read.
class JsonEvents final : public nlohmann::json_sax<json> {
 public:
  explicit JsonEvents(size_t depth) : depth_(depth) {}
  JsonValue root;

  bool null() override { return add(JsonValue()); }
  bool boolean(bool truth) override { return add(JsonValue(truth)); }
  bool number_integer(int64_t n) override { return add(JsonValue(n)); }
  bool number_unsigned(uint64_t n) override { return add(JsonValue(n)); }
  bool number_float(double, const std::string&) override {
    return add(JsonValue(JsonValue::number));
  }
  bool string(std::string& text) override { return add(JsonValue(std::move(text))); }
  bool binary(json::binary_t&) override { return add(JsonValue()); }
  bool start_object(size_t) override { return open(JsonValue::object); }
  bool start_array(size_t) override { return open(JsonValue::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (left_out_ == 0) key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t, const std::string&, const json::exception& e) override {
    throw ValueError("not JSON: " + shown(e.what()));
  }

 private:
  bool add(JsonValue value) {
    if (left_out_ > 0 || open_.size() == depth_) return true;
    if (open_.empty())
      root = std::move(value);
    else if (open_.back()->kind() == JsonValue::array)
      open_.back()->items().push_back(std::move(value));
    else
      open_.back()->fields().emplace_back(std::move(key_), std::move(value));
    return true;
  }
  bool open(JsonValue::Kind kind) {
    if (left_out_ > 0 || open_.size() == depth_) return ++left_out_, true;
    add(JsonValue(kind));
    JsonValue* const parent = open_.empty() ? nullptr : open_.back();
    open_.push_back(!parent                              ? &root
                    : parent->kind() == JsonValue::array ? &parent->items().back()
                                                         : &parent->fields().back().second);
    return true;
  }
  bool close() {
    if (left_out_ > 0)
      --left_out_;
    else
      open_.pop_back();
    return true;
  }

  const size_t depth_;
  size_t left_out_ = 0;           // open arrays and objects that are nested too deep to be kept
  std::vector<JsonValue*> open_;  // the other open ones, the outermost first
  std::string key_;
};

}  // namespace

const char* JsonValue::type_name() const {
  constexpr const char* names[] = {"null",   "boolean", "number", "number",
                                   "number", "string",  "array",  "object"};
  return names[kind_];
}

const JsonValue* JsonValue::find(std::string_view name) const {
  for (auto it = fields().rbegin(); it != fields().rend(); ++it)
    if (it->first == name) return &it->second;
  return nullptr;
}

JsonValue parse_json(std::string_view text, size_t depth) {
  JsonEvents events(depth);
  json::sax_parse(text, &events);
  return std::move(events.root);
}

}  // namespace tenon
