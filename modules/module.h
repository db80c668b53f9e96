// Models as plain structs. No macro, no registration:
//
//   struct Net : nn::Module<Net> {
//     nn::Linear fc1{784, 256}, fc2{256, 10};
//     Tensor forward(const Tensor& x) { return fc2(relu(fc1(x))); }
//   };
//   Net net;
//   Tensor y = net(x);
//   for (auto& [name, p] : net.named_parameters()) …
//
// Fields that are modules, nn::Parameter or nn::Buffer, or standard containers of them (see
// fields.h), are found by their names, also after a new value is assigned to them. A plain Tensor
// field is not found: it is neither saved nor moved by to(), as in PyTorch. A field `bool training`
// is set by train() and eval().
//
// Arguments are fields with defaults, set by name, which later fields may use:
//   struct Net : nn::Module<Net> {
//     int64_t hidden = 256;
//     nn::Linear fc1{784, hidden}, fc2{hidden, 10};
//     …
//   };
//   Net net{.hidden = 512};  // or Net{{}, 512}, because GCC's -Wextra warns about the former
// A class with a constructor says how many data members it has, and the compiler checks the number:
//   struct Net : nn::Module<Net> {
//     static constexpr int num_fields = 2;
//     nn::Linear fc1, fc2;
//     explicit Net(int64_t hidden) : fc1(784, hidden), fc2(hidden, 10) {}
//     …
//   };
// One with private members lists them in fields() instead (see fields.h).
//
// A copy of a module shares its tensors, which is how layers are tied. This is true for the
// elements of a std::vector<Block>(n, Block()) too; nn::repeat makes n modules that share nothing,
// and nn::clone makes a deep copy. str() shows which modules share tensors.
//
// The type of a module derives from nn::Module<itself> and from no other module: a call would run
// the forward of the other one.
//
// The layers of Tenon hold the arguments of their constructors in fields of the same names. Each
// has a function fields(FieldVisitor&), which lists its parameters, buffers and children, and most
// have extra_repr(), which returns what str() prints between the parentheses.
#pragma once

#include <concepts>
#include <iosfwd>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <tenon/core/base/module_path.h>
#include <tenon/modules/fields.h>
#include <tenon/modules/hooks.h>
#include <tenon/modules/state_dict.h>

namespace tenon::nn {

// A parameter or buffer with its name: `for (auto& [name, tensor] : named_parameters(net))`.
struct NamedTensor {
  std::string name;  // "body.0.weight"
  Tensor tensor;     // the module's own handle: changing it changes the module
};
// A module with its name below another one.
struct NamedModule {
  std::string name;  // "body.0"; empty for the module itself
  ModuleRef module;  // refers to the module, which has to live longer
};
// A tensor of a module's state.
struct StateEntry {
  std::string name;  // "body.0.weight"
  Tensor tensor;     // the module's own handle
  bool is_buffer;    // whether it is a buffer and not a parameter
};

// ---- functions for any module; most of them are methods of nn::Module too ----

// Lists are in the order of declaration, a module's own tensors before those of its children. A
// tensor or module that occurs twice is listed once, under its first name. Functions that look at
// tensors throw a ValueError for a module whose fields() leaves out a tensor or module (fields.h).

// Returns the parameters of the module and of all modules below it.
TENON_API std::vector<Tensor> parameters(ModuleRef module);
// Returns the same parameters with their names, such as "body.0.weight".
TENON_API std::vector<NamedTensor> named_parameters(ModuleRef module);
// Returns the buffers of the module and of all modules below it, persistent or not.
TENON_API std::vector<Tensor> buffers(ModuleRef module);
// Returns the same buffers with their names.
TENON_API std::vector<NamedTensor> named_buffers(ModuleRef module);
// Returns the module itself, with an empty name, and then all modules below it.
TENON_API std::vector<NamedModule> named_modules(ModuleRef module);
// Returns the modules that are fields of the module itself.
TENON_API std::vector<NamedModule> named_children(ModuleRef module);
// Returns the number of elements in all parameters.
TENON_API int64_t num_parameters(ModuleRef module);

// Sets the field `training` of the module and of all modules below it to `mode`.
TENON_API void train(ModuleRef module, bool mode = true);
// Does the same as train(module, false).
TENON_API void eval(ModuleRef module);
// Moves every parameter and buffer to a device. Handles stay valid, so an optimizer that was made
// before still updates this model.
TENON_API void to(ModuleRef module, Device device);
// Converts the floating parameters and buffers to a floating dtype. Throws a DTypeError for another
// dtype.
TENON_API void to(ModuleRef module, DType dtype);
// Brings every parameter and buffer of as many dimensions as the format is for into that order of
// elements: channels_last those of four, as the weights of Conv2d, channels_last_3d those of five,
// contiguous_format those of four and five. Operators take the format from their inputs and
// weights. preserve_format changes nothing.
TENON_API void to(ModuleRef module, MemoryFormat format);
// Drops the gradients of all parameters, or sets them to zero if set_to_none is false.
TENON_API void zero_grad(ModuleRef module, bool set_to_none = true);
// Sets whether the parameters require a gradient.
TENON_API void requires_grad_(ModuleRef module, bool value = true);

// Returns the parameters and persistent buffers by name; a shared tensor occurs under each of its
// names. The tensors share the module's values and require no gradient.
TENON_API StateDict state_dict(ModuleRef module);
// Returns the same tensors as the module's own handles.
TENON_API std::vector<StateEntry> state_entries(ModuleRef module);

// Returns what PyTorch prints for the module, such as "Linear(in_features=10, out_features=1,
// bias=True)", with its children indented below. A module that shares tensors with an earlier one
// is followed by a remark such as "  # weight, bias shared with encoder".
TENON_API std::string str(ModuleRef module);
// Prints str(module), and returns the stream.
TENON_API std::ostream& operator<<(std::ostream& out, ModuleRef module);

// Returns the module and all modules below it, children before their parents, as PyTorch's apply
// does.
TENON_API std::vector<ModuleRef> modules_bottom_up(ModuleRef module);
// Calls fn(ModuleRef) for each module of modules_bottom_up(module):
//   net.apply([](nn::ModuleRef m) {
//     if (auto* linear = m.as<nn::Linear>()) nn::init::zeros_(linear->bias);
//   });
template <class F>
void apply(ModuleRef module, F&& fn) {
  for (ModuleRef each : modules_bottom_up(module)) fn(each);
}

namespace detail {
TENON_API void require_repeatable(int64_t count);
}  // namespace detail

// Returns a std::vector of `count` modules that share nothing, each made by a call of its own:
//   nn::repeat(12, [] { return Block(64); })
//   nn::repeat(3, [](int64_t i) { return nn::Linear(8 << i, 16 << i); })  // gets the index
// A `std::vector<Block>(12, Block(64))` contains twelve copies instead, which share their
// parameters: it is one layer that is used twelve times. Throws a ValueError for a count that is
// negative or above 2^24.
template <class F>
auto repeat(int64_t count, F&& make) {
  // A module is callable too, with a tensor, so it is refused before its arguments are examined.
  constexpr bool is_module = std::is_base_of_v<ModuleTag, std::remove_cvref_t<F>>;
  static_assert(!is_module,
                "nn::repeat wants a callable that makes a module, not a module, whose copies would "
                "share its parameters: nn::repeat(3, [] { return nn::Linear(2, 2); })");
  if constexpr (!is_module) {
    constexpr bool takes_number = std::is_invocable_v<F&, int64_t>;
    static_assert(
        takes_number || std::is_invocable_v<F&>,
        "nn::repeat wants a callable that makes a module, with no argument or its number: "
        "nn::repeat(3, [] { return nn::Linear(2, 2); })");
    if constexpr (takes_number || std::is_invocable_v<F&>) {
      auto make_one = [&](int64_t i) {
        if constexpr (takes_number)
          return make(i);
        else
          return make();
      };
      using Made = decltype(make_one(int64_t{}));
      static_assert(detail::IsModule<Made> && detail::OwnModule<Made>,
                    "nn::repeat wants a callable that returns a module by value, of a type T that "
                    "derives from nn::Module<T> itself");
      detail::require_repeatable(count);
      std::vector<Made> modules;
      modules.reserve(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) modules.push_back(make_one(i));
      return modules;
    }
  }
}

namespace detail {
// Gives all tensors of `module` and below it their own values; tensors that were shared within the
// module stay shared.
TENON_API void unshare(ModuleRef module);
}  // namespace detail

// Returns a deep copy, which shares nothing with the original; tensors that are shared within it
// stay so. Gradients are not copied. Throws a ValueError if a std::shared_ptr in it owns a module
// whose type cannot be copied.
template <class M>
  requires std::is_base_of_v<ModuleTag, M>
M clone(const M& module) {
  static_assert(detail::copies<M>(),
                "clone needs a module that can be copied; one that holds a std::unique_ptr cannot");
  if constexpr (detail::copies<M>()) {
    M copy(module);
    detail::unshare(copy);
    return copy;
  }
}

namespace detail {
// While one exists, it is told of each call of a module on its thread that returns a tensor, or a
// pair or tuple that begins with one.
class TENON_API CallWatcher {
 public:
  CallWatcher();
  CallWatcher(const CallWatcher&) = delete;
  virtual ~CallWatcher();
  // Is called with the module and the tensor that it returned.
  virtual void returned(ModuleRef module, const Tensor& output) = 0;

 private:
  CallWatcher* before_;
};
}  // namespace detail

// During its lifetime, errors say that they came from inside this module.
class TENON_API ModuleScope {
 public:
  // Begins a call of the module at `self`. Throws a ValueError if its fields() leaves something
  // out.
  ModuleScope(const void* self, const ModuleType* type);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  // Tells the watcher of this thread, if there is one, what the module returned.
  void returned(const Tensor& output) const {
    if (watcher_) [[unlikely]]
      watcher_->returned({const_cast<void*>(self_), type_}, output);
  }
  ModuleScope& operator=(const ModuleScope&) = delete;

  // Adds " (in module LeNet.fc1)" to an error that does not say where it came from, and the name of
  // the tensor to an error about one that is on the wrong device.
  void explain(Error& error) const;

 private:
  const char* name_in_parent() const;
  const char* find_name() const;

  const void* self_;
  const ModuleType* type_;
  const ModuleScope* parent_;
  detail::CallWatcher* watcher_;
  ModulePath path_;
};

namespace detail {
// Is true for a pair or tuple that begins with a tensor. A std::variant has a std::get<0>, too,
// which throws where it holds another type.
template <class Result>
concept BeginsWithTensor = requires {
  requires std::tuple_size<Result>::value > 0;
} && std::is_same_v<std::remove_cv_t<std::tuple_element_t<0, Result>>, Tensor>;

// Tells the watcher of this thread the tensor that a module returned, or the first of a pair or
// tuple.
template <class Result>
void tell_result(const ModuleScope& scope, const Result& result) {
  if constexpr (std::is_same_v<Result, Tensor>)
    scope.returned(result);
  else if constexpr (BeginsWithTensor<Result>)
    scope.returned(std::get<0>(result));
}
}  // namespace detail

namespace detail {
// Notes that a module has ended. Another one may take its place, and be in another mode: programs
// must not take one for the other.
TENON_API void module_is_gone(const void* module, size_t bytes) noexcept;
}  // namespace detail

// The base of every module: `struct Net : nn::Module<Net>`. It has no fields.
template <class D>
struct Module : ModuleTag {
  ~Module() { detail::module_is_gone(this, sizeof(D)); }

  // Calls Net::forward, which may take any arguments and return anything, between its hooks. Errors
  // of Tenon name the module.
#ifdef __cpp_explicit_this_parameter
  template <class Self, class... A>
  decltype(auto) operator()(this Self&& self, A&&... args) {
    static_assert(
        std::is_same_v<std::remove_cvref_t<Self>, D>,
        "this type derives from another module, whose forward the call would run: derive "
        "a module type T from nn::Module<T> itself, and hold the other module as a field");
    return call(self, std::forward<A>(args)...);
  }
#else  // C++20 cannot tell here which type derives from the base; see docs/design.md
  template <class... A>
  decltype(auto) operator()(A&&... args) {
    return call(self(), std::forward<A>(args)...);
  }
  template <class... A>
  decltype(auto) operator()(A&&... args) const {
    return call(self(), std::forward<A>(args)...);
  }
#endif

  // The methods below call the functions of the same names above and in hooks.h, which say more.

  // Returns the parameters of the module and of all modules below it.
  std::vector<Tensor> parameters() const { return nn::parameters(self()); }
  // Returns the same with their names.
  std::vector<NamedTensor> named_parameters() const { return nn::named_parameters(self()); }
  // Returns the buffers of the module and of all modules below it.
  std::vector<Tensor> buffers() const { return nn::buffers(self()); }
  // Returns the same with their names.
  std::vector<NamedTensor> named_buffers() const { return nn::named_buffers(self()); }
  // Returns the module itself, with an empty name, and then all modules below it.
  std::vector<NamedModule> named_modules() const { return nn::named_modules(self()); }
  // Returns the modules that are fields of this one, with their names.
  std::vector<NamedModule> named_children() const { return nn::named_children(self()); }
  // Returns the number of elements in all parameters.
  int64_t num_parameters() const { return nn::num_parameters(self()); }
  // Returns the parameters and persistent buffers by name.
  StateDict state_dict() const { return nn::state_dict(self()); }

  // Sets `training` of the module and of all modules below it, and returns the module.
  D& train(bool mode = true) { return nn::train(self(), mode), self(); }
  // Returns the module after train(false).
  D& eval() { return nn::train(self(), false), self(); }
  // Moves all parameters and buffers to the device, and returns the module.
  D& to(Device device) { return nn::to(self(), device), self(); }
  // Does the same for a device that is given as text, such as "cuda:1".
  D& to(const char* device) { return to(Device(device)); }
  // Converts the floating parameters and buffers to a floating dtype, and returns the module.
  D& to(DType dtype) { return nn::to(self(), dtype), self(); }
  // Moves and then converts the module, and returns it.
  D& to(Device device, DType dtype) { return to(device).to(dtype); }
  // Brings the parameters and buffers into the format, and returns the module.
  D& to(MemoryFormat format) { return nn::to(self(), format), self(); }
  // Drops the gradients of all parameters, or sets them to zero if set_to_none is false.
  void zero_grad(bool set_to_none = true) { nn::zero_grad(self(), set_to_none); }
  // Sets whether the parameters require gradients, and returns the module.
  D& requires_grad_(bool value = true) { return nn::requires_grad_(self(), value), self(); }
  // Calls fn(ModuleRef) for each module below and then for this one, and returns this one.
  template <class F>
  D& apply(F&& fn) {
    nn::apply(self(), fn);
    return self();
  }

  // Runs the hook before each call of forward, as long as the result lives.
  [[nodiscard]] ModuleHook register_forward_pre_hook(ForwardPreHook hook) {
    return nn::register_forward_pre_hook(self(), std::move(hook));
  }
  // Runs the hook after each call of forward, as long as the result lives.
  [[nodiscard]] ModuleHook register_forward_hook(ForwardHook hook) {
    return nn::register_forward_hook(self(), std::move(hook));
  }
  // Runs the hook in each backward pass through a call, as long as the result lives.
  [[nodiscard]] ModuleHook register_full_backward_hook(FullBackwardHook hook) {
    return nn::register_full_backward_hook(self(), std::move(hook));
  }

 private:
  template <class Self, class... A>
  static decltype(auto) call(Self& self, A&&... args) {
    ModuleScope scope(&self, module_type<D>());
    try {
      using Result = decltype(self.forward(std::forward<A>(args)...));
      if constexpr (!std::is_void_v<Result> && !std::is_reference_v<Result>)
        if (detail::hooks_registered.load(std::memory_order_relaxed)) [[unlikely]]
          if (const auto hooked = detail::HookedCall::begin(
                  {const_cast<D*>(static_cast<const D*>(&self)), module_type<D>()})) {
            Result result = detail::call_hooked<Result>(
                *hooked,
                [&](auto&&... a) -> Result {
                  return self.forward(std::forward<decltype(a)>(a)...);
                },
                std::forward<A>(args)...);
            detail::tell_result(scope, result);
            return result;
          }
      if constexpr (std::is_move_constructible_v<Result> && !std::is_reference_v<Result>) {
        Result result = self.forward(std::forward<A>(args)...);
        detail::tell_result(scope, result);
        return result;
      } else {
        return self.forward(std::forward<A>(args)...);
      }
    } catch (Error& error) {
      scope.explain(error);
      throw;
    }
  }
  D& self() { return static_cast<D&>(*this); }
  const D& self() const { return static_cast<const D&>(*this); }
};

}  // namespace tenon::nn
