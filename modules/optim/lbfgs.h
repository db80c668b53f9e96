// The optimizer LBFGS: a quasi-Newton method.
#pragma once

#include <vector>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct LBFGSOptions {
  double lr = 1;                   // finite and at least 0
  int64_t max_iter = 20;           // iterations of one step, at least 1
  int64_t max_eval = 0;            // calls of the closure in one step; 0 means max_iter * 5 / 4
  double tolerance_grad = 1e-7;    // a step ends where no element of the gradient is larger
  double tolerance_change = 1e-9;  // a step ends where parameters or loss change by less
  int64_t history_size = 100;      // the number of earlier steps that it remembers, at least 1
  bool strong_wolfe = false;       // whether to search lines, as line_search_fn = "strong_wolfe"
  bool maximize = false;           // whether it steps towards larger values of the objective
};

// A quasi-Newton method (Nocedal and Wright, Numerical Optimization, chapter 7), as PyTorch's:
// step(closure) calls the closure several times, which computes the loss and its gradients again.
// It reads the loss and inner products on the host. All parameters are one group and may be on
// several devices; history and directions are on that of the first, in f64 if a parameter is and
// otherwise in f32. The tolerances are finite and at least 0.
class TENON_API LBFGS final : public Optimizer {
 public:
  // Makes an optimizer of these parameters. Throws a ValueError for an option outside its range.
  explicit LBFGS(std::vector<Tensor> params, const LBFGSOptions& options = {});
  // Makes one with this learning rate and the other options by default: LBFGS(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  LBFGS(std::vector<Tensor> params, Number lr)
      : LBFGS(std::move(params), LBFGSOptions{.lr = static_cast<double>(lr)}) {}

  // Throws a ValueError, because there is no step without a closure.
  void step() override;
  // Makes one step of at most max_iter iterations, and returns the loss before it.
  Tensor step(const Closure& closure) override;
  // Returns the options, which may be changed; the next step checks them.
  LBFGSOptions& options() { return options_; }

  // Does as Optimizer::state_dict(); the history is part of the state.
  OptimizerState state_dict() override;
  // Does as Optimizer::prepare_load(state), for states of LBFGS.
  [[nodiscard]] std::function<void()> prepare_load(const OptimizerState& state) override;
  // Returns true.
  bool order_counts() const override { return true; }

 protected:
  std::vector<Slot> slots(size_t) override { return {}; }
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;

 private:
  // What it remembers of earlier iterations.
  struct History {
    int64_t func_evals = 0, n_iter = 0;
    double t = 0, H_diag = 1;
    Tensor d, prev_flat_grad;
    std::vector<Tensor> old_dirs, old_stps;
    std::vector<double> ro;
  };
  struct Evaluation {
    double loss;
    Tensor grad;
  };

  Device flat_device() const;
  DType flat_dtype() const;
  int64_t numel() const;
  Tensor gather_flat_grad() const;
  double signed_loss(const Tensor& loss) const;
  void add_direction(double t, const Tensor& d) const;
  void remember(const Tensor& flat_grad);
  Tensor direction(const Tensor& flat_grad) const;
  Evaluation search(const Closure& closure, const Evaluation& from, double gtd, int64_t max_ls,
                    int64_t& evaluations);
  Tensor read_flat(const OptimizerState& state, const std::string& key) const;

  LBFGSOptions options_;
  History history_;
};

}  // namespace tenon::optim
