#include <algorithm>

#include <tenon/core/base/printable.h>
#include <tenon/core/format.h>
#include <tenon/modules/state_dict.h>

namespace tenon::nn {

StateDict::StateDict(std::initializer_list<Entry> entries) {
  for (auto& [name, tensor] : entries) {
    if (contains(name))
      throw StateDictError(
          fmt::format("StateDict: the key \"{}\" is given twice", printable(name)));
    set(name, tensor);
  }
}

size_t StateDict::position(std::string_view name) const {
  auto less = [this](uint32_t i, std::string_view n) { return entries_[i].first < n; };
  return static_cast<size_t>(std::lower_bound(by_name_.begin(), by_name_.end(), name, less) -
                             by_name_.begin());
}

void StateDict::set(std::string name, Tensor tensor) {
  size_t at = position(name);
  if (at < by_name_.size() && entries_[by_name_[at]].first == name) {
    entries_[by_name_[at]].second = std::move(tensor);
    return;
  }
  by_name_.insert(by_name_.begin() + static_cast<std::ptrdiff_t>(at),
                  static_cast<uint32_t>(entries_.size()));
  entries_.emplace_back(std::move(name), std::move(tensor));
}

const Tensor* StateDict::find(std::string_view name) const {
  size_t at = position(name);
  if (at == by_name_.size() || entries_[by_name_[at]].first != name) return nullptr;
  return &entries_[by_name_[at]].second;
}

const Tensor& StateDict::at(std::string_view name) const {
  if (const Tensor* found = find(name)) return *found;
  std::string text = fmt::format("StateDict: there is no key \"{}\" among its {}", printable(name),
                                 entries_.size());
  for (size_t i = 0; i < entries_.size() && i < 8; ++i)
    text += fmt::format("{} \"{}\"", i ? "," : ":", printable(entries_[i].first));
  throw StateDictError(text + (entries_.size() > 8 ? ", …" : ""));
}

bool StateDict::erase(std::string_view name) {
  size_t at = position(name);
  if (at == by_name_.size() || entries_[by_name_[at]].first != name) return false;
  uint32_t gone = by_name_[at];
  entries_.erase(entries_.begin() + gone);
  by_name_.erase(by_name_.begin() + static_cast<std::ptrdiff_t>(at));
  for (uint32_t& i : by_name_) i -= i > gone;
  return true;
}

std::vector<std::string> StateDict::keys() const {
  std::vector<std::string> names;
  for (auto& [name, tensor] : entries_) names.push_back(name);
  return names;
}

}  // namespace tenon::nn
