#include <algorithm>

#include <fmt/format.h>

#include <tenon/core/format.h>
#include <tenon/modules/sequential.h>

namespace tenon::nn {

namespace {

size_t wrap_index(int64_t i, size_t size, const char* what) {
  auto n = static_cast<int64_t>(size);
  if (i < -n || i >= n)
    throw IndexError(fmt::format("{}: index {} is out of range for {} modules", what, i, n));
  return static_cast<size_t>(i < 0 ? i + n : i);
}

void require_module(const AnyModule& module, const char* what) {
  if (!module.module_ref().self) throw ValueError(fmt::format("{}: the module is null", what));
}

// A new name among those of `children`.
template <class Children>
void require_name(const char* what, const std::string& name, const Children& children) {
  if (name.empty() || name.find('.') != name.npos)
    throw ValueError(
        fmt::format("{}: \"{}\" cannot name a module: keys of parameters are joined by dots, so a "
                    "name is not empty and has none",
                    what, name));
  for (auto& child : children)
    if (child.first == name)
      throw ValueError(fmt::format("{}: there is a module \"{}\" already", what, name));
}

}  // namespace

void AnyModule::refuse_call() const {
  if (!owner_) throw ValueError("AnyModule: called, but it holds no module");
  throw ValueError(
      fmt::format("AnyModule: the forward of {0} does not take one tensor and return one; call it "
                  "through as<{0}>()",
                  type_->name));
}

Sequential::Sequential(std::initializer_list<std::pair<std::string, AnyModule>> named) {
  for (auto& [name, module] : named) add(name, module);
}

Sequential& Sequential::add(AnyModule module) {
  return add(std::to_string(children_.size()), std::move(module));
}

Sequential& Sequential::add(std::string name, AnyModule module) {
  require_module(module, "Sequential");
  require_name("Sequential", name, children_);
  children_.emplace_back(std::move(name), std::move(module));
  return *this;
}

AnyModule& Sequential::operator[](int64_t i) {
  return children_[wrap_index(i, children_.size(), "Sequential")].second;
}

Tensor Sequential::forward(const Tensor& x) const {
  if (children_.empty()) return x;
  Tensor y = children_[0].second(x);
  for (size_t i = 1; i < children_.size(); ++i) y = children_[i].second(y);
  return y;
}

void Sequential::fields(FieldVisitor& v) {
  for (auto& [name, module] : children_) v(name, module);
}

ModuleList& ModuleList::append(AnyModule module) {
  require_module(module, "ModuleList");
  children_.push_back(std::move(module));
  return *this;
}

AnyModule& ModuleList::operator[](int64_t i) {
  return children_[wrap_index(i, children_.size(), "ModuleList")];
}

void ModuleList::fields(FieldVisitor& v) {
  for (size_t i = 0; i < children_.size(); ++i) v(std::to_string(i), children_[i]);
}

ModuleDict::ModuleDict(std::initializer_list<Item> named) {
  for (auto& [name, module] : named) add(name, module);
}

ModuleDict& ModuleDict::add(std::string name, AnyModule module) {
  require_module(module, "ModuleDict");
  require_name("ModuleDict", name, children_);
  children_.emplace_back(std::move(name), std::move(module));
  return *this;
}

std::vector<std::string> ModuleDict::keys() const {
  std::vector<std::string> names;
  for (auto& child : children_) names.push_back(child.first);
  return names;
}

bool ModuleDict::contains(std::string_view name) const {
  for (auto& child : children_)
    if (child.first == name) return true;
  return false;
}

AnyModule& ModuleDict::operator[](std::string_view name) {
  for (auto& child : children_)
    if (child.first == name) return child.second;
  throw IndexError(fmt::format("ModuleDict: there is no module \"{}\"; there are: {}", name,
                               fmt::join(keys(), ", ")));
}

AnyModule ModuleDict::pop(std::string_view name) {
  AnyModule module = (*this)[name];
  // The name may be that of the item itself.
  const auto at = std::find_if(children_.begin(), children_.end(),
                               [&](const Item& child) { return child.first == name; });
  children_.erase(at);
  return module;
}

void ModuleDict::fields(FieldVisitor& v) {
  for (auto& [name, module] : children_) v(name, module);
}

}  // namespace tenon::nn
