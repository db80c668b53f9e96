// Functions with a gradient of their own:
//
//   struct Cube : autograd::Function<Cube> {
//     static Tensor forward(autograd::Context& context, const Tensor& x, double scale) {
//       context.save_for_backward({x});
//       context.save("scale", scale);
//       return scale * x * x * x;
//     }
//     static std::vector<Tensor> backward(autograd::Context& context,
//                                         std::span<const Tensor> grads) {
//       const Tensor& x = context.saved_tensors()[0];
//       return {grads[0] * (3 * context.get<double>("scale")) * x * x, Tensor()};
//     }
//   };
//   Tensor y = Cube::apply(x, 2.0);
//
// `forward` takes any arguments after the context. Nothing in it is recorded. It returns a tensor,
// or a std::vector, array, pair or tuple of tensors. `backward` takes a gradient for each tensor
// that forward returned and returns one for each argument of forward, in their order; a std::vector
// of tensors among the arguments counts as many as it has, and where there is no gradient, as for
// numbers, an undefined tensor stands. With one argument it may return a Tensor. Made of
// differentiable operators, it has gradients of higher order, too.
//
// Under an Autocast guard the operators of forward convert their inputs as anywhere, and those of
// backward do it as those of forward did, whatever guards there are where the backward pass is run.
// Gradients are converted to the dtype of their argument.
//
// backward runs on the thread that runs the backward pass, and its Context is its own: several
// threads may run it at once. Errors of forward and backward reach the caller as they are thrown;
// to an Error of Tenon the name of the function is added.
#pragma once

#include <any>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/core/autograd/tensors_in.h>
#include <tenon/core/error.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/tensor.h>

namespace tenon::autograd {

class Context;

namespace detail {
class FunctionCall;
class FunctionRule;
struct FunctionState;
using FunctionBackward = std::vector<Tensor> (*)(Context&, std::span<const Tensor>);

// Returns the compiler's name of a type without its namespaces, "Cube", or its own `name`.
template <class T>
constexpr std::string_view function_name() {
  if constexpr (requires { std::string_view(T::name); }) {
    return T::name;
  } else {
    constexpr std::string_view text = __PRETTY_FUNCTION__;
    size_t begin = text.find("T = ") + 4, end = text.find_first_of(";]", begin), depth = 0;
    for (size_t i = begin; i < end; ++i) {
      if (text[i] == '<' || text[i] == '(' || text[i] == '{') ++depth;
      if (text[i] == '>' || text[i] == ')' || text[i] == '}') --depth;
      if (depth == 0 && text[i] == ':') begin = i + 1;
    }
    return text.substr(begin, end - begin);
  }
}

// Compares two kept values; null for those of which nothing can tell: tensors, and what only points
// to a value.
using SameValue = bool (*)(const std::any&, const std::any&);
template <class T>
constexpr SameValue comparison() {
  if constexpr (tenon::detail::has_tensors<T> || requires { typename T::element_type; } ||
                !std::equality_comparable<T>)
    return nullptr;
  else
    return [](const std::any& a, const std::any& b) {
      const T *x = std::any_cast<T>(&a), *y = std::any_cast<T>(&b);
      return x && y && *x == *y;
    };
}
}  // namespace detail

// Holds what forward leaves for backward.
class TENON_API Context {
 public:
  // ---- in forward ----

  // Keeps tensors for backward: arguments, results of forward, or others. A second-order gradient
  // knows the history of arguments and results; other tensors are constants to it. Replaces what
  // was kept before.
  void save_for_backward(std::vector<Tensor> tensors);
  // Keeps a value of any type that can be copied.
  template <class T>
  void save(std::string name, T value) {
    set(std::move(name), std::any(std::move(value)), detail::comparison<T>());
  }
  // Says that these results of forward have no gradient. Those that are not floating never have.
  void mark_non_differentiable(std::vector<Tensor> results);
  // Says whether backward gets zeros (true, the default) or an undefined tensor for a result that
  // has no gradient.
  void set_materialize_grads(bool value);

  // ---- in both ----

  // Returns whether the gradient of this argument of forward is wanted.
  bool needs_input_grad(size_t argument) const;

  // ---- in backward ----

  // Returns what save_for_backward kept. If one of the tensors was changed in place since, backward
  // is not called, and the pass throws an AutogradError.
  const std::vector<Tensor>& saved_tensors() const;
  // Returns the value that was kept under this name. Throws a ValueError if there is none, or if it
  // has another type.
  template <class T>
  const T& get(std::string_view name) const {
    const T* value = std::any_cast<T>(&find(name));
    if (!value) refuse_type(name);
    return *value;
  }

 private:
  friend class detail::FunctionCall;
  friend class detail::FunctionRule;
  explicit Context(std::shared_ptr<detail::FunctionState> state) : state_(std::move(state)) {}
  void set(std::string name, std::any value, detail::SameValue same);
  const std::any& find(std::string_view name) const;
  [[noreturn]] void refuse_type(std::string_view name) const;

  std::shared_ptr<detail::FunctionState> state_;
  std::vector<Tensor> saved_;
  std::vector<bool> needed_;
};

namespace detail {

// One call of a function, on its way into the graph.
class TENON_API FunctionCall {
 public:
  // `inputs` has a tensor for each argument, undefined where the argument is none.
  FunctionCall(std::string_view name, std::vector<Tensor> inputs);
  ~FunctionCall();
  // Returns the context that forward and backward get.
  Context& context() { return context_; }
  // Records the call, if a gradient is wanted, and gives the results their history.
  void record(std::span<Tensor* const> results, FunctionBackward backward);
  // Adds the name of the function to an error of forward.
  void explain(Error& error) const;

 private:
  std::vector<Tensor> inputs_;
  std::vector<uint64_t> versions_;
  Context context_;
};

// Adds the tensors of an argument, or an undefined one for an argument that has none.
template <class T>
void add_argument(std::vector<Tensor>& inputs, const T& argument) {
  if constexpr (tenon::detail::has_tensors<T>) {
    auto add = [&](const Tensor& tensor) { inputs.push_back(tensor); };
    tenon::detail::each_tensor(argument, add);
  } else {
    inputs.emplace_back();
  }
}

}  // namespace detail

// The base of such a function, `struct Cube : autograd::Function<Cube>`. Errors call it by the name
// of its type, or by a `static constexpr const char* name`.
template <class D>
struct Function {
  // Calls forward with these arguments, records the call if a gradient is wanted, and returns what
  // forward returns. Errors of forward begin with the name of the function.
  template <class... A>
  static auto apply(A&&... arguments) {
    std::vector<Tensor> inputs;
    (detail::add_argument(inputs, arguments), ...);
    detail::FunctionCall call(detail::function_name<D>(), std::move(inputs));
    try {
      auto result =
          no_grad([&] { return D::forward(call.context(), std::forward<A>(arguments)...); });
      static_assert(tenon::detail::has_tensors<decltype(result)>,
                    "forward returns a tensor, or a std::vector, array, pair or tuple of tensors");
      call.record(tenon::detail::places_of_tensors(result),
                  [](Context& context, std::span<const Tensor> grads) {
                    using Gradients = decltype(D::backward(context, grads));
                    if constexpr (std::derived_from<Gradients, Tensor>)
                      return std::vector<Tensor>{D::backward(context, grads)};
                    else
                      return std::vector<Tensor>(D::backward(context, grads));
                  });
      return result;
    } catch (Error& error) {
      call.explain(error);
      throw;
    }
  }
};

}  // namespace tenon::autograd
