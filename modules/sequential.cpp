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
  if (name.empty() || name.find('.') != name.npos)
    throw ValueError(
        fmt::format("Sequential: \"{}\" cannot name a module: keys of parameters are joined by "
                    "dots, so a name is not empty and has none",
                    name));
  for (auto& child : children_)
    if (child.first == name)
      throw ValueError(fmt::format("Sequential: there is a module \"{}\" already", name));
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

}  // namespace tenon::nn
