// Modules whose forward is recorded while it runs and then replayed as a program.
//
//   auto fast = tenon::compile(net);
//   for (auto& [x, y] : loader) {
//     optimizer.zero_grad();
//     cross_entropy(fast(x), y).backward();
//     optimizer.step();
//   }
//
// docs/compile.md says what is decided once and what is decided every time.
#pragma once

#include <ostream>
#include <string>
#include <type_traits>

#include <tenon/core/graph/compile.h>
#include <tenon/modules/module.h>

namespace tenon {

namespace detail {
template <class M>
struct ModuleCall {
  M* module;
  template <class... T>
  auto operator()(const T&... arguments) const {
    return (*module)(arguments...);
  }
};
TENON_API std::string compiled_module_text(nn::ModuleRef module);
}  // namespace detail

// The result of compile() of a module. It refers to the module, which must live as long as this is
// called, and stay at its place.
template <class M>
class CompiledModule : public Compiled<detail::ModuleCall<M>> {
 public:
  // Does as compile(module, options).
  CompiledModule(M& module, const CompileOptions& options)
      : Compiled<detail::ModuleCall<M>>(detail::ModuleCall<M>{&module}, options),
        module_(&module) {}

  // Returns the module itself: its parameters are those of the programs, and its train(), eval()
  // and to() count for the next call.
  M& module() const { return *module_; }
  // Returns what PyTorch prints for a compiled module: its text, indented, in Compiled(…).
  std::string str() const { return detail::compiled_module_text(*module_); }
  // Prints compiled.str(), and returns the stream.
  friend std::ostream& operator<<(std::ostream& out, const CompiledModule& compiled) {
    return out << compiled.str();
  }

 private:
  M* module_;
};

// Returns a function that does the same as a call of the module with tensors, as compile() does for
// functions: in training, with gradients, and in evaluation. The module stays usable; both are one
// model. It is called hybridize in MXNet.
//
// The results of a call have a history of one node. Gradients reach parameters, arguments and all
// other tensors that the module used, with the same bits as without compile, by a program of its
// own for each set of results that have a gradient and of tensors whose gradient is wanted.
// Gradients of higher order are an AutogradError.
template <class M>
  requires nn::detail::IsModule<std::remove_const_t<M>>
CompiledModule<M> compile(M& module, const CompileOptions& options = {}) {
  return {module, options};
}
// Does not compile for a temporary module: the result refers to it, so keep it in a variable.
template <class M>
  requires nn::detail::IsModule<M>
void compile(M&& module, const CompileOptions& options = {}) = delete;

}  // namespace tenon
