// Containers for modules of any types: one that calls them in a row, a list, and a dictionary. A
// function of a tensor, such as a lambda, is taken in place of a module, as a Lambda.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/modules/module.h>

namespace tenon::nn {

namespace detail {
// Is true for a function of a tensor that is no module, such as a lambda.
template <class F>
concept TensorFunction =
    !IsModule<F> && !Erased<F> && std::is_invocable_r_v<Tensor, const F&, const Tensor&>;
}  // namespace detail

// A function of a tensor as a module, which is how a container holds a lambda. What the function
// captured is not part of the model: parameters in it are neither trained nor saved nor moved, and
// clone() copies it as C++ copies the function. A call returns function(x), of any shape.
struct TENON_API Lambda final : Module<Lambda> {
  template <class F>
    requires detail::TensorFunction<std::decay_t<F>>
  Lambda(F&& function) : function(std::forward<F>(function)) {}
  Tensor forward(const Tensor& x) const { return function(x); }
  void fields(FieldVisitor& v) { v("function", function); }

  std::function<Tensor(const Tensor&)> function;  // the function that a call calls
};

// Holds a module of any type, or a function of a tensor as a Lambda. Copies of an AnyModule share
// the module.
class TENON_API AnyModule {
 public:
  // Holds nothing.
  AnyModule() = default;
  // Holds a copy of a module, or the module itself if it is moved here.
  template <class M>
    requires detail::IsModule<std::remove_cvref_t<M>>
  AnyModule(M&& module)
      : AnyModule(std::make_shared<std::remove_cvref_t<M>>(std::forward<M>(module))) {}
  // Holds a function as a Lambda.
  template <class F>
    requires detail::TensorFunction<std::decay_t<F>>
  AnyModule(F&& function) : AnyModule(Lambda(std::forward<F>(function))) {}
  // Shares a module with other owners; null holds nothing.
  template <detail::IsModule M>
  AnyModule(std::shared_ptr<M> module) : owner_(std::move(module)) {
    if (!owner_) return;
    type_ = module_type<M>();
    if constexpr (requires(M& m, const Tensor& x) { Tensor(m.forward(x)); })
      call_ = [](void* self, const Tensor& x) -> Tensor { return (*static_cast<M*>(self))(x); };
  }

  // Calls the module with one tensor and returns its one result. Throws a ValueError if there is no
  // module, or if its forward takes or returns something else; call such a module through `as`.
  Tensor operator()(const Tensor& x) const {
    if (!call_) refuse_call();
    return call_(owner_.get(), x);
  }
  // Returns the module if its type is exactly M, otherwise null.
  template <class M>
  M* as() const {
    return owner_ ? module_ref().as<M>() : nullptr;
  }
  // Returns a reference to the module, whose `self` is null if there is none.
  ModuleRef module_ref() const { return {owner_.get(), type_}; }
  // Returns the pointer that owns the module, which clone() replaces; null if there is none.
  std::shared_ptr<void>& owner() { return owner_; }

 private:
  [[noreturn]] void refuse_call() const;

  std::shared_ptr<void> owner_;
  const ModuleType* type_ = nullptr;
  Tensor (*call_)(void*, const Tensor&) = nullptr;
};

// Calls its children one after the other, each with the result of the one before:
//   nn::Sequential(nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 10))
// The children are named "0", "1", … unless they are given names:
//   nn::Sequential({{"hidden", nn::Linear(784, 256)}, {"act", nn::ReLU()}})
// A function of a tensor may be one of them:
//   nn::Sequential(nn::Conv2d(1, 6, 5), [](const Tensor& x) { return x.flatten(1); })
// A call returns the result of the last child, and its input if there is no child. It throws the
// errors of its children, and a ValueError for a child that does not take one tensor and return
// one.
class TENON_API Sequential final : public Module<Sequential> {
 public:
  // Makes it without children.
  Sequential() = default;
  // Makes it of children that are named by their numbers.
  template <class... M>
    requires((detail::IsModule<std::remove_cvref_t<M>> ||
              detail::TensorFunction<std::decay_t<M>>) &&
             ...) &&
            (sizeof...(M) > 1 || (!std::is_same_v<std::remove_cvref_t<M>, Sequential> && ...)) &&
            (sizeof...(M) > 0)
  explicit Sequential(M&&... modules) {
    (add(std::forward<M>(modules)), ...);
  }
  // Makes it of children with names. Throws a ValueError as add(name, module) does.
  Sequential(std::initializer_list<std::pair<std::string, AnyModule>> named);

  // Adds a child whose name is its number, and returns *this. Throws a ValueError for a null module
  // and where an earlier child was given that number as its name.
  Sequential& add(AnyModule module);
  // Adds a child with a name, and returns *this. Throws a ValueError for a null module and for a
  // name that is taken, is empty or contains a dot.
  Sequential& add(std::string name, AnyModule module);
  // Does the same as add(module), by LibTorch's name.
  Sequential& push_back(AnyModule module) { return add(std::move(module)); }
  // Does the same as add(name, module), by LibTorch's name.
  Sequential& push_back(std::string name, AnyModule module) {
    return add(std::move(name), std::move(module));
  }

  // Returns the number of children.
  size_t size() const { return children_.size(); }
  // Returns child `i`; assign to it to replace the child. A negative number counts from the end.
  // Throws an IndexError if there is no such child.
  AnyModule& operator[](int64_t i);
  // Returns the same, read-only.
  const AnyModule& operator[](int64_t i) const { return const_cast<Sequential&>(*this)[i]; }

  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v);

 private:
  std::vector<std::pair<std::string, AnyModule>> children_;
};

// A list of modules of any types for your own forward to call: `for (auto& layer : layers) x =
// layer(x);`. If all of them have one type, a std::vector does the same.
class TENON_API ModuleList final : public Module<ModuleList> {
 public:
  static constexpr bool is_list = true;  // prints runs of equal modules as one line
  // Makes an empty list.
  ModuleList() = default;
  // Makes a list of these modules.
  template <class... M>
    requires((detail::IsModule<std::remove_cvref_t<M>> ||
              detail::TensorFunction<std::decay_t<M>>) &&
             ...) &&
            (sizeof...(M) > 1 || (!std::is_same_v<std::remove_cvref_t<M>, ModuleList> && ...)) &&
            (sizeof...(M) > 0)
  explicit ModuleList(M&&... modules) {
    (append(std::forward<M>(modules)), ...);
  }

  // Adds a module at the end, and returns *this. Throws a ValueError for a null module.
  ModuleList& append(AnyModule module);
  // Does the same as append(module), by LibTorch's name.
  ModuleList& push_back(AnyModule module) { return append(std::move(module)); }
  // Returns the number of modules.
  size_t size() const { return children_.size(); }
  // Returns module `i`; assign to it to replace the module. A negative number counts from the end.
  // Throws an IndexError if there is no such module.
  AnyModule& operator[](int64_t i);
  // Return iterators over the modules in order: `for (auto& layer : layers)`.
  std::vector<AnyModule>::iterator begin() { return children_.begin(); }
  std::vector<AnyModule>::iterator end() { return children_.end(); }

  void fields(FieldVisitor& v);

 private:
  std::vector<AnyModule> children_;
};

// A dictionary of modules of any types by name, in the order in which they were added, for your own
// forward to choose from:
//   nn::ModuleDict heads{{{"class", nn::Linear(64, 10)}, {"box", nn::Linear(64, 4)}}};
//   y = heads["box"](x);
// If all of them have one type, a std::map with keys of strings does the same, in the order of the
// keys.
class TENON_API ModuleDict final : public Module<ModuleDict> {
 public:
  using Item = std::pair<std::string, AnyModule>;

  // Makes an empty dictionary.
  ModuleDict() = default;
  // Makes a dictionary of these modules. Throws a ValueError as add does.
  ModuleDict(std::initializer_list<Item> named);

  // Adds a module, and returns *this. Throws a ValueError for a null module and for a name that is
  // taken, is empty or contains a dot.
  ModuleDict& add(std::string name, AnyModule module);
  // Removes a module and returns it. Throws an IndexError if there is no such module.
  AnyModule pop(std::string_view name);
  // Removes all modules.
  void clear() { children_.clear(); }

  // Returns the number of modules.
  size_t size() const { return children_.size(); }
  // Returns whether there is a module of this name.
  bool contains(std::string_view name) const;
  // Returns the names in order.
  std::vector<std::string> keys() const;
  // Returns the module of this name; assign to it to replace the module. Throws an IndexError if
  // there is no such module.
  AnyModule& operator[](std::string_view name);
  // Returns the same, read-only.
  const AnyModule& operator[](std::string_view name) const {
    return const_cast<ModuleDict&>(*this)[name];
  }
  // Return iterators over the items in order: `for (auto& [name, module] : dict)`.
  std::vector<Item>::iterator begin() { return children_.begin(); }
  std::vector<Item>::iterator end() { return children_.end(); }

  void fields(FieldVisitor& v);

 private:
  std::vector<Item> children_;
};

}  // namespace tenon::nn
