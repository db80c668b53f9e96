// Named tensors in order, which is what a checkpoint contains of a model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon::nn {

// A map from names to tensors. Names are unique and keep the order in which they were first set.
// Iterate with `for (auto& [name, tensor] : dict)`.
class TENON_API StateDict {
 public:
  using Entry = std::pair<std::string, Tensor>;
  // Makes an empty map.
  StateDict() = default;
  // Makes a map of these entries. Throws a StateDictError for a name that is given twice.
  StateDict(std::initializer_list<Entry> entries);

  // Adds an entry, or replaces the tensor of the entry with that name, which keeps its position.
  void set(std::string name, Tensor tensor);
  // Returns the tensor of that name, or null if there is none. The pointer is valid until the next
  // change.
  const Tensor* find(std::string_view name) const;
  // Returns whether there is an entry of that name.
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  // Returns the tensor of that name. Throws a StateDictError that lists the first names if there is
  // none.
  const Tensor& at(std::string_view name) const;
  // Removes the entry of that name and returns whether there was one.
  bool erase(std::string_view name);

  // Returns the number of entries.
  size_t size() const { return entries_.size(); }
  // Returns whether there is no entry.
  bool empty() const { return entries_.empty(); }
  // Returns entry `i`, which has to be below size(): it is not checked.
  const Entry& operator[](size_t i) const { return entries_[i]; }
  // Return iterators over the entries in order.
  std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries_.end(); }
  // Returns the names in order.
  std::vector<std::string> keys() const;

 private:
  size_t position(std::string_view name) const;  // in by_name_: of the first that is not less

  std::vector<Entry> entries_;
  std::vector<uint32_t> by_name_;  // indices of entries_, sorted by name
};

}  // namespace tenon::nn
