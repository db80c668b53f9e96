// Named numbers, texts and tensors in a checkpoint, beside the tensors of the model.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <tenon/core/tensor.h>

namespace tenon {

// A whole number, a number of floating point, a text or a tensor. Numbers are stored exactly,
// infinities and NaN included.
class TENON_API CheckpointValue {
 public:
  // Makes the whole number 0.
  CheckpointValue() : value_(int64_t{0}) {}
  // Keep a number. A bool becomes 0 or 1.
  CheckpointValue(std::floating_point auto number) : value_(static_cast<double>(number)) {}
  CheckpointValue(std::signed_integral auto number) : value_(static_cast<int64_t>(number)) {}
  CheckpointValue(std::unsigned_integral auto number) : value_(static_cast<uint64_t>(number)) {}
  // Keep a text.
  CheckpointValue(std::string text) : value_(std::move(text)) {}
  CheckpointValue(const char* text) : value_(std::string(text)) {}
  // Keeps a tensor, whose values are shared.
  CheckpointValue(Tensor tensor) : value_(std::move(tensor)) {}

  // Returns whether the value is a number of any kind.
  bool is_number() const { return value_.index() < 3; }
  // Returns whether the value is a text.
  bool is_text() const { return std::holds_alternative<std::string>(value_); }
  // Returns whether the value is a tensor.
  bool is_tensor() const { return std::holds_alternative<Tensor>(value_); }

  // Each of these returns the value, or throws a StateDictError that says what it is instead.

  // Returns a number of any kind; a whole one beyond 2^53 is rounded.
  double number() const;
  // Returns a whole number from -2^63 to 2^63 - 1, which may have been given as one of floating
  // point.
  int64_t whole() const;
  // Returns a whole number from 0 to 2^64 - 1, likewise.
  uint64_t natural() const;
  // Returns a text.
  const std::string& text() const;
  // Returns a tensor, which shares the values that were given.
  const Tensor& tensor() const;

  // Returns a number or text as in JSON, and dtype and shape of a tensor: "f32 (2, 3)".
  std::string str() const;

 private:
  std::variant<double, int64_t, uint64_t, std::string, Tensor> value_;
};

// Values by name, in the order of the names. Iterate with `for (auto& [name, value] : values)`.
class TENON_API CheckpointValues {
 public:
  // The type of the list.
  using Map = std::map<std::string, CheckpointValue, std::less<>>;
  // Makes an empty list.
  CheckpointValues() = default;
  // Takes {{"loss", 0.5}, {"note", "third run"}, {"order", tensor}}; of two values with one name
  // the first counts.
  CheckpointValues(std::initializer_list<Map::value_type> values) : values_(values) {}

  // Returns the value of that name to read or to write; where there is none, it becomes 0.
  CheckpointValue& operator[](const std::string& name) { return values_[name]; }
  // Returns the value of that name, or null.
  const CheckpointValue* find(std::string_view name) const;
  // Returns whether there is a value of that name.
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  // Returns the value of that name. Throws a StateDictError that lists the first names if there is
  // none.
  const CheckpointValue& at(std::string_view name) const;
  // Removes the value of that name. Returns whether there was one.
  bool erase(std::string_view name);

  // Returns the number of values.
  size_t size() const { return values_.size(); }
  // Returns whether there are no values.
  bool empty() const { return values_.empty(); }
  // Return iterators over pairs of name and value.
  Map::const_iterator begin() const { return values_.begin(); }
  Map::const_iterator end() const { return values_.end(); }

 private:
  Map values_;
};

}  // namespace tenon
