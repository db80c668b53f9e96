// Functions of tensors that are recorded while they run and then replayed as programs.
//
//   auto step = tenon::compile([&](const Tensor& x, const Tensor& y) {
//     optimizer.zero_grad();
//     Tensor loss = cross_entropy(model(x), y);
//     loss.backward();
//     optimizer.step();
//     return loss;
//   });
//   for (auto& [x, y] : loader) loss = step(x, y);
//
// docs/compile.md says what is decided once and what is decided every time.
#pragma once

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon {

// Says which passes a recorded function goes through before it becomes a program, and how it is
// queued. None of them changes a result: switch one off to see what it does.
struct CompilePasses {
  // Removes operators whose results nobody needs.
  bool dead_code = true;
  // Computes once what is computed twice.
  bool common_subexpressions = true;
  // Removes copies whose source may be read in their place.
  bool copies = true;
  // Computes small tensors that are always the same once.
  bool constants = true;
  // Has products, convolutions and batch norms add a tensor to their results themselves.
  bool residuals = true;
  // Has them compute activations of their results themselves, too.
  bool activations = true;
  // Makes one operator of pointwise operators on the same elements.
  bool pointwise = true;
  // Queues plans that stay the same from call to call by one call.
  bool device_graphs = true;
};

// Says how many programs a function keeps and what they are made for.
struct CompileOptions {
  // Limits the kinds of arguments for which a function keeps programs: up to four for each, such
  // as one for training and one for evaluation. The kind that was not used for the longest time
  // goes first. Where more kinds take turns, so that none is replayed often, those that are there
  // stay for 64 calls of others, then 256, at last 65536, and the others run without a program.
  // With `dynamic`, programs of at least 64 derived sizes are kept.
  size_t max_programs = 8;
  // Says which passes recorded functions go through.
  CompilePasses passes = {};
  // Lists the dimensions of the arguments whose sizes differ from call to call, such as {0} for
  // batches; a negative one counts from the end. After calls of three or more sizes, what calls of
  // all other sizes do follows from theirs, and the function is not run for them; docs/compile.md
  // says what has to hold for that.
  std::vector<int64_t> dynamic = {};
  // Times replays beside the function, when that runs once more to be compared with its program. A
  // program that is clearly slower several times in a row is set aside, and the function runs
  // itself for a while. Results are the same bit for bit.
  bool measure = true;
};

// Gives names to what a saved program takes, returns and uses.
struct SaveProgramOptions {
  // Gives the names of the arguments and of what is returned, in order. What has no name, or an
  // empty one, is called by its number, from "0" on.
  std::vector<std::string> inputs = {}, outputs = {};
  // Gives the names of tensors that the function uses from outside, such as the parameters of a
  // model: what nn::state_dict(model) returns, from begin() to end(). Others are called by the
  // module and the operator that uses them first.
  std::vector<std::pair<std::string, Tensor>> tensors = {};
};

namespace detail {

// Holds the function as the calls below see it: it takes its arguments from where it is, and adds
// what it returns to a list.
struct CompiledBody {
  void* self;
  void (*call)(void* self, std::vector<Tensor>& results);
};

// Keeps the programs of one function, and runs it or one of them.
class TENON_API CompiledCalls {
 public:
  explicit CompiledCalls(const CompileOptions& options);
  CompiledCalls(CompiledCalls&&) noexcept;
  CompiledCalls& operator=(CompiledCalls&&) noexcept;
  ~CompiledCalls();
  // Runs the function or a program in its place, and writes what it returns to `results`. What the
  // function does may depend on `sizes`. If there are any, a call does what follows from calls of
  // other sizes, and CompileOptions::dynamic has no meaning.
  void call(std::span<const Tensor* const> arguments, const CompiledBody& body,
            std::vector<Tensor>& results, std::span<const int64_t> sizes = {});
  // These do what the methods of Compiled with their names do; save() is defined in
  // serialization/program.
  std::string explain() const;
  std::string to_dot(bool recorded) const;
  void save(const std::filesystem::path& path, const SaveProgramOptions& options) const;
  void reset();

 private:
  struct State;
  State& state() const;
  std::unique_ptr<State> state_;
};

// Names the type that a function returns; void where it cannot be called so, which is refused
// elsewhere.
template <class F, class... T>
struct ResultOf {
  using type = void;
};
template <class F, class... T>
  requires std::invocable<F, T...>
struct ResultOf<F, T...> {
  using type = std::remove_cv_t<std::invoke_result_t<F, T...>>;
};

// Moves tensors from the result of a function to a list and back: a Tensor, a list of them, a pair,
// tuple or array of them or of such pairs, tuples and arrays, or void.
template <class R>
struct CompiledResult {
  static_assert(
      requires { std::tuple_size<R>::value; },
      "a compiled function returns a Tensor, a std::vector<Tensor>, a std::pair, std::tuple or "
      "std::array of tensors, or nothing; wrap a part of a tensor or a parameter in Tensor(...), "
      "and read numbers outside of the function");

  static void put(R&& result, std::vector<Tensor>& into) {
    std::apply(
        [&](auto&... each) {
          (CompiledResult<std::remove_cvref_t<decltype(each)>>::put(std::move(each), into), ...);
        },
        result);
  }
  static R take(std::vector<Tensor>& from, size_t& at) {
    return take(from, at, std::make_index_sequence<std::tuple_size_v<R>>());
  }
  template <size_t... i>
  static R take(std::vector<Tensor>& from, size_t& at, std::index_sequence<i...>) {
    return R{CompiledResult<std::tuple_element_t<i, R>>::take(from, at)...};
  }
};
template <>
struct CompiledResult<Tensor> {
  static void put(Tensor&& result, std::vector<Tensor>& into) { into.push_back(std::move(result)); }
  static Tensor take(std::vector<Tensor>& from, size_t& at) { return std::move(from[at++]); }
};
template <>
struct CompiledResult<std::vector<Tensor>> {
  static void put(std::vector<Tensor>&& result, std::vector<Tensor>& into) {
    into = std::move(result);
  }
  static std::vector<Tensor> take(std::vector<Tensor>& from, size_t&) { return std::move(from); }
};

}  // namespace detail

// The function that compile() returns. It may be moved, and not copied. Two threads that call one
// compiled function wait for each other; inside another compiled function, and inside itself, it is
// the plain function.
template <class F>
class Compiled {
 public:
  // compile() calls this.
  Compiled(F function, const CompileOptions& options)
      : function_(std::move(function)), calls_(options) {}

  // Does what the function does, and returns what it returns.
  template <class... T>
    requires(std::same_as<T, Tensor> && ...)
  auto operator()(const T&... arguments) {
    static_assert(
        std::invocable<F&, const T&...>,
        "the function that was given to tenon::compile takes another number of arguments, "
        "or others than const Tensor&");
    using R = typename detail::ResultOf<F&, const T&...>::type;
    auto bound = [&](std::vector<Tensor>& results) {
      if constexpr (!std::invocable<F&, const T&...>)
        return;
      else if constexpr (std::is_void_v<R>)
        function_(arguments...);
      else
        detail::CompiledResult<R>::put(R(function_(arguments...)), results);
    };
    const detail::CompiledBody body{&bound, [](void* self, std::vector<Tensor>& results) {
                                      (*static_cast<decltype(bound)*>(self))(results);
                                    }};
    const Tensor* const list[] = {&arguments..., nullptr};
    std::vector<Tensor> results;
    calls_.call({list, sizeof...(T)}, body, results);
    if constexpr (!std::is_void_v<R>) {
      size_t at = 0;
      return detail::CompiledResult<R>::take(results, at);
    }
  }

  // Does the same for parts of tensors, such as x(0), and for parameters.
  template <class... T>
    requires((std::convertible_to<const T&, Tensor> && ...) && !(std::same_as<T, Tensor> && ...))
  auto operator()(const T&... arguments) {
    return (*this)(Tensor(arguments)...);
  }

  // Does not compile: it says what is wrong with arguments that a program could not be given.
  template <class... T>
    requires(!(std::convertible_to<const T&, Tensor> && ...))
  void operator()(const T&...) {
    static_assert((std::convertible_to<const T&, Tensor> && ...),
                  "the arguments of a compiled function are tensors: pass a number as "
                  "tenon::scalar(number), and the tensors of a list or a tuple one by one");
  }

  // Returns a text for people: which programs there are, what each is made of, how often it ran,
  // and why the function, or a kind of arguments, has none.
  std::string explain() const { return calls_.explain(); }
  // Returns the program that was used last as a picture for Graphviz: operators, and where each
  // finds what it reads. With `recorded`, what was recorded, before any pass. Throws a ValueError
  // if there is no program.
  std::string to_dot(bool recorded = false) const { return calls_.to_dot(recorded); }
  // Writes the program that ran last into a file, which tenon::Program::load
  // (serialization/program/program.h) runs without this function: operators, weights, buffers, and
  // what optimizers remember. Throws a ValueError where there is no program yet (call the function
  // at least twice, with other arguments), where something has changed since, and for what no
  // program can do without its function; and a CheckpointError as tenon::save does. docs/compile.md
  // says more.
  void save(const std::filesystem::path& path, const SaveProgramOptions& options = {}) const {
    calls_.save(path, options);
  }
  // Forgets all programs: the next calls are recorded again.
  void reset() { calls_.reset(); }

 private:
  F function_;
  detail::CompiledCalls calls_;
};

// Returns a function that does the same as `function`, which takes tensors (const Tensor&) and
// returns a Tensor, a std::vector, a std::pair, std::tuple or std::array of tensors in any nesting,
// or nothing. The first calls run it and record what it queues; when two of them have done the
// same, a program takes its place, which runs the same plans on the same numbers without C++ code
// of the function, recording for autograd, or allocation of what is only needed inside. Results are
// the same bit for bit. Everything of the function that is no operator on tensors and no step of an
// optimizer happens only while it is recorded. A module is given itself: compile(net), in
// modules/compile.h.
//
// A program is made for the shapes, dtypes, strides and devices of the arguments, whether they
// require gradients, whether gradients are recorded, the guards of Autocast around the call, and
// the default device; for others there is another program. Replaced parameters, train() and eval(),
// and gradients that came or went are noticed. What cannot be a program runs as always, and
// explain() says why. Throws a ValueError if the function reads a value of a tensor while it is
// recorded, and if a number that it gives to an operator differs from call to call.
//
// Results through which a backward pass may go have a history of one node, whose backward pass is
// compiled in the same way.
template <class F>
  requires(!requires(F& function) { function.named_parameters(); })
Compiled<std::decay_t<F>> compile(F&& function, const CompileOptions& options = {}) {
  return {std::forward<F>(function), options};
}

}  // namespace tenon
