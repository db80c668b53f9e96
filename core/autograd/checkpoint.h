// Less memory for more time: what a part of a model computes is not kept for the backward pass, but
// computed again there (Chen et al., arXiv:1604.06174).
#pragma once

#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <tenon/core/autograd/tensors_in.h>
#include <tenon/core/grad_mode.h>

namespace tenon {

class Recomputation;

namespace detail {
// The first call of the function of a checkpoint, which lasts as long as this.
class TENON_API CheckpointCall {
 public:
  // Begins the call. `again` calls the function once more, which takes `inputs`.
  CheckpointCall(std::vector<Tensor> inputs, std::function<void()> again);
  ~CheckpointCall();
  CheckpointCall(const CheckpointCall&) = delete;
  CheckpointCall& operator=(const CheckpointCall&) = delete;

 private:
  struct Inside;
  std::shared_ptr<Recomputation> recomputation_;
  std::unique_ptr<Inside> inside_;
};
}  // namespace detail

// Returns function(arguments…). Of what the function computes, only its results and its arguments
// stay in memory; the backward pass calls it once more when it first needs one of the other values.
// Parameters that the function uses get their gradients as always, and so do tensors that it
// captures. A nested checkpoint keeps its own arguments.
//
//   Tensor y = checkpoint([&](const Tensor& x) { return block(x); }, x);
//
// The function and its arguments are copied, and the copy is called twice: it must do the same each
// time, and what it captures by reference (such as a module) must live until the backward pass. The
// random numbers of the second call are those of the first, so that dropout has the same mask, as
// long as no other thread draws some meanwhile; running statistics of a batch norm are updated
// twice. Gradients of higher order work. Without a recorded graph (NoGrad) it only calls the
// function.
//
// The backward pass throws an AutogradError where an argument was changed in place in between,
// where the second call computes something else, and where the function itself runs a backward pass
// through what it has computed. Errors of the second call reach whoever runs the backward pass.
template <class F, class... A>
auto checkpoint(F&& function, A&&... arguments) {
  if (!grad_enabled()) return std::invoke(std::forward<F>(function), std::forward<A>(arguments)...);
  struct Kept {
    std::decay_t<F> function;
    std::tuple<std::decay_t<A>...> arguments;
  };
  const auto kept =
      std::make_shared<Kept>(Kept{std::forward<F>(function), {std::forward<A>(arguments)...}});
  const detail::CheckpointCall inside(detail::tensors_in(kept->arguments), [kept] {
    (void)std::apply(kept->function, std::as_const(kept->arguments));
  });
  return std::apply(kept->function, std::as_const(kept->arguments));
}

}  // namespace tenon
