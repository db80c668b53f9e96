// Modules in a row, or in a list, whose types need not be known.
#pragma once

#include <initializer_list>
#include <utility>

#include <tenon/modules/module.h>

namespace tenon::nn {

// Holds any module. Copies share it.
class TENON_API AnyModule {
 public:
  AnyModule() = default;
  template <class M>
    requires detail::IsModule<std::remove_cvref_t<M>>
  AnyModule(M&& module)
      : AnyModule(std::make_shared<std::remove_cvref_t<M>>(std::forward<M>(module))) {}
  template <detail::IsModule M>
  AnyModule(std::shared_ptr<M> module) : owner_(std::move(module)) {
    if (!owner_) return;
    type_ = module_type<M>();
    if constexpr (requires(M& m, const Tensor& x) { Tensor(m.forward(x)); })
      call_ = [](void* self, const Tensor& x) -> Tensor { return (*static_cast<M*>(self))(x); };
  }

  // One tensor in, one out. ValueError where nothing is held, or a module that takes something
  // else: call that through `as`.
  Tensor operator()(const Tensor& x) const {
    if (!call_) refuse_call();
    return call_(owner_.get(), x);
  }
  // The module, if it is exactly an M; else null.
  template <class M>
  M* as() const {
    return owner_ ? module_ref().as<M>() : nullptr;
  }
  ModuleRef module_ref() const { return {owner_.get(), type_}; }
  std::shared_ptr<void>& owner() { return owner_; }

 private:
  [[noreturn]] void refuse_call() const;

  std::shared_ptr<void> owner_;
  const ModuleType* type_ = nullptr;
  Tensor (*call_)(void*, const Tensor&) = nullptr;
};

// Hands its input through its children: nn::Sequential(nn::Linear(784, 256), nn::ReLU(),
// nn::Linear(256, 10)). Children are called "0", "1", …, or by names: nn::Sequential({{"hidden",
// nn::Linear(784, 256)}, {"act", nn::ReLU()}}).
class TENON_API Sequential final : public Module<Sequential> {
 public:
  Sequential() = default;
  template <class... M>
    requires(detail::IsModule<std::remove_cvref_t<M>> && ...) &&
            (sizeof...(M) > 1 || (!std::is_same_v<std::remove_cvref_t<M>, Sequential> && ...)) &&
            (sizeof...(M) > 0)
  explicit Sequential(M&&... modules) {
    (add(std::forward<M>(modules)), ...);
  }
  Sequential(std::initializer_list<std::pair<std::string, AnyModule>> named);

  Sequential& add(AnyModule module);
  // ValueError for a name that is taken, empty or has a dot in it.
  Sequential& add(std::string name, AnyModule module);

  size_t size() const { return children_.size(); }
  // Assign to replace a child. IndexError where there is none; negative counts from the end.
  AnyModule& operator[](int64_t i);
  const AnyModule& operator[](int64_t i) const { return const_cast<Sequential&>(*this)[i]; }

  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v);

 private:
  std::vector<std::pair<std::string, AnyModule>> children_;
};

// Modules of any types, called by your own forward: `for (auto& layer : layers) x = layer(x);`.
// Where all have one type, a std::vector of them does the same.
class TENON_API ModuleList final : public Module<ModuleList> {
 public:
  static constexpr bool is_list = true;
  ModuleList() = default;
  template <class... M>
    requires(detail::IsModule<std::remove_cvref_t<M>> && ...) &&
            (sizeof...(M) > 1 || (!std::is_same_v<std::remove_cvref_t<M>, ModuleList> && ...)) &&
            (sizeof...(M) > 0)
  explicit ModuleList(M&&... modules) {
    (append(std::forward<M>(modules)), ...);
  }

  ModuleList& append(AnyModule module);
  size_t size() const { return children_.size(); }
  // Assign to replace a child. IndexError where there is none; negative counts from the end.
  AnyModule& operator[](int64_t i);
  std::vector<AnyModule>::iterator begin() { return children_.begin(); }
  std::vector<AnyModule>::iterator end() { return children_.end(); }

  void fields(FieldVisitor& v);

 private:
  std::vector<AnyModule> children_;
};

}  // namespace tenon::nn
