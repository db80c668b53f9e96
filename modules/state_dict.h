// Named tensors in order: what a checkpoint holds of a model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon::nn {

// Keys are unique and keep the order in which they were first set. `for (auto& [name, tensor] :
// dict)`.
class TENON_API StateDict {
 public:
  using Entry = std::pair<std::string, Tensor>;
  StateDict() = default;
  // A name given twice is a StateDictError.
  StateDict(std::initializer_list<Entry> entries);

  // Adds an entry, or replaces the one of that name where it stands.
  void set(std::string name, Tensor tensor);
  // Null where there is none. Valid until the next change.
  const Tensor* find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  // StateDictError where there is none.
  const Tensor& at(std::string_view name) const;
  // Whether there was one.
  bool erase(std::string_view name);

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  const Entry& operator[](size_t i) const { return entries_[i]; }
  std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries_.end(); }
  std::vector<std::string> keys() const;

 private:
  size_t position(std::string_view name) const;  // in by_name_: of the first that is not less

  std::vector<Entry> entries_;
  std::vector<uint32_t> by_name_;  // indices of entries_, sorted by name
};

}  // namespace tenon::nn
