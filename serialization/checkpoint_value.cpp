#include <charconv>
#include <cmath>
#include <limits>

#include <tenon/core/base/number_text.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/checkpoint_value.h>

namespace tenon {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

[[noreturn]] void refuse_value(const CheckpointValue& value, const char* wanted) {
  throw StateDictError(fmt::format("a value of a checkpoint is {} {}, not {}",
                                   value.is_number() ? "the number"
                                   : value.is_text() ? "the text"
                                                     : "a tensor",
                                   excerpt(value.str()), wanted));
}

std::string quoted_json(std::string_view text) {
  std::string json = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      json += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      json += c;
  }
  return json + '"';
}

std::string json_number(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  char text[32];
  std::string json(text, std::to_chars(text, text + sizeof text, number).ptr);  // the shortest
  if (json.find_first_of(".e") == json.npos) json += ".0";
  return json;
}

}  // namespace

double CheckpointValue::number() const {
  if (auto* real = std::get_if<double>(&value_)) return *real;
  if (auto* whole = std::get_if<int64_t>(&value_)) return static_cast<double>(*whole);
  if (auto* natural = std::get_if<uint64_t>(&value_)) return static_cast<double>(*natural);
  refuse_value(*this, "a number");
}

int64_t CheckpointValue::whole() const {
  if (auto* whole = std::get_if<int64_t>(&value_)) return *whole;
  if (auto* natural = std::get_if<uint64_t>(&value_); natural && *natural <= INT64_MAX)
    return static_cast<int64_t>(*natural);
  if (auto* real = std::get_if<double>(&value_);
      real && *real >= -0x1p63 && *real < 0x1p63 && std::floor(*real) == *real)
    return static_cast<int64_t>(*real);
  refuse_value(*this, "a whole number from -2^63 to 2^63 - 1");
}

uint64_t CheckpointValue::natural() const {
  if (auto* natural = std::get_if<uint64_t>(&value_)) return *natural;
  if (auto* whole = std::get_if<int64_t>(&value_); whole && *whole >= 0)
    return static_cast<uint64_t>(*whole);
  if (auto* real = std::get_if<double>(&value_);
      real && *real >= 0 && *real < 0x1p64 && std::floor(*real) == *real)
    return static_cast<uint64_t>(*real);
  refuse_value(*this, "a whole number from 0 to 2^64 - 1");
}

const std::string& CheckpointValue::text() const {
  if (auto* text = std::get_if<std::string>(&value_)) return *text;
  refuse_value(*this, "a text");
}

const Tensor& CheckpointValue::tensor() const {
  if (auto* tensor = std::get_if<Tensor>(&value_)) return *tensor;
  refuse_value(*this, "a tensor");
}

std::string CheckpointValue::str() const {
  return std::visit(Overloaded{[](double number) { return json_number(number); },
                               [](const std::string& text) { return quoted_json(text); },
                               [](const Tensor& tensor) {
                                 return tensor.defined()
                                            ? fmt::format("{} {}", tensor.dtype(), tensor.shape())
                                            : std::string("an undefined tensor");
                               },
                               [](auto whole) { return fmt::format("{}", whole); }},
                    value_);
}

const CheckpointValue* CheckpointValues::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

const CheckpointValue& CheckpointValues::at(std::string_view name) const {
  if (const CheckpointValue* found = find(name)) return *found;
  std::string text =
      fmt::format("there is no value \"{}\" among the {}", printable(name), values_.size());
  size_t shown = 0;
  for (auto other = values_.begin(); other != values_.end() && shown < 8; ++other)
    text += fmt::format("{} \"{}\"", shown++ ? "," : ":", printable(other->first));
  throw StateDictError(text + (shown < values_.size() ? ", …" : ""));
}

bool CheckpointValues::erase(std::string_view name) {
  const auto found = values_.find(name);
  if (found == values_.end()) return false;
  values_.erase(found);
  return true;
}

}  // namespace tenon
