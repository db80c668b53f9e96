#include <cmath>

#include <tenon/core/base/recording.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>
#include <tenon/modules/optim/lbfgs.h>
#include <tenon/modules/optim/state.h>
#include <tenon/modules/optim/strong_wolfe.h>

namespace tenon::optim {

namespace {

double inner_product(const Tensor& a, const Tensor& b) { return (a * b).sum().item(); }
double largest(const Tensor& x) { return x.numel() == 0 ? 0 : amax(abs(x)).item(); }

}  // namespace

LBFGS::LBFGS(std::vector<Tensor> params, const LBFGSOptions& options)
    : Optimizer("LBFGS", {std::move(params)}), options_(options) {
  check_all_options();
}

void LBFGS::check_options(size_t) const {
  const auto& o = options_;
  require_not_negative(o.lr, "lr");
  require(o.max_iter >= 1, "max_iter", static_cast<double>(o.max_iter), "at least 1");
  require(o.max_eval >= 0, "max_eval", static_cast<double>(o.max_eval), "at least 0");
  require_not_negative(o.tolerance_grad, "tolerance_grad");
  require_not_negative(o.tolerance_change, "tolerance_change");
  require(o.history_size >= 1, "history_size", static_cast<double>(o.history_size), "at least 1");
}

std::vector<Optimizer::Option> LBFGS::options_of(size_t) {
  auto& o = options_;
  return {{.name = "lr", .number = &o.lr},
          {.name = "max_iter", .whole = &o.max_iter},
          {.name = "max_eval", .whole = &o.max_eval},
          {.name = "tolerance_grad", .number = &o.tolerance_grad},
          {.name = "tolerance_change", .number = &o.tolerance_change},
          {.name = "history_size", .whole = &o.history_size},
          {.name = "strong_wolfe", .flag = &o.strong_wolfe},
          {.name = "maximize", .flag = &o.maximize}};
}

void LBFGS::step() {
  throw ValueError(
      "LBFGS: a step needs a closure that computes the loss and its gradients again; call "
      "step(closure)");
}

// ---- all parameters as one vector

Device LBFGS::flat_device() const { return params()[0].device(); }

DType LBFGS::flat_dtype() const {
  for (auto& p : params())
    if (p.dtype() == f64) return f64;
  return f32;
}

int64_t LBFGS::numel() const {
  int64_t sum = 0;
  for (auto& p : params()) sum += p.numel();
  return sum;
}

Tensor LBFGS::gather_flat_grad() const {
  const NoGrad guard;
  std::vector<Tensor> parts;
  for (auto& p : params()) {
    const Tensor g = p.grad();
    parts.push_back(g.defined()
                        ? g.reshape({-1}).to(flat_device()).to(flat_dtype())
                        : zeros({p.numel()}, {.dtype = flat_dtype(), .device = flat_device()}));
  }
  const Tensor flat = cat(parts, 0);
  return options_.maximize ? neg(flat) : flat;
}

double LBFGS::signed_loss(const Tensor& loss) const {
  return options_.maximize ? -loss.item() : loss.item();
}

void LBFGS::add_direction(double t, const Tensor& d) const {
  const NoGrad guard;
  int64_t at = 0;
  for (Tensor p : params()) {
    const Tensor part = d.narrow(0, at, p.numel()).reshape(p.shape()).to(p.device());
    at += p.numel();
    p.copy_(p.detach() + part * t);
  }
}

// ---- an iteration

// Adds the last step, and how the gradient changed over it, to the history.
void LBFGS::remember(const Tensor& flat_grad) {
  History& h = history_;
  const Tensor y = flat_grad - h.prev_flat_grad, s = h.d * h.t;
  const double ys = inner_product(y, s);
  if (!(ys > 1e-10)) return;
  while (h.old_dirs.size() >= static_cast<size_t>(options_.history_size)) {
    h.old_dirs.erase(h.old_dirs.begin());
    h.old_stps.erase(h.old_stps.begin());
    h.ro.erase(h.ro.begin());
  }
  h.old_dirs.push_back(y);
  h.old_stps.push_back(s);
  h.ro.push_back(1 / ys);
  h.H_diag = ys / inner_product(y, y);
}

// The gradient times the approximate inverse of the Hessian, by the two loops over the history. The
// factors stay on the device.
Tensor LBFGS::direction(const Tensor& flat_grad) const {
  const History& h = history_;
  const size_t n = h.old_dirs.size();
  std::vector<Tensor> al(n);
  Tensor q = neg(flat_grad);
  for (size_t i = n; i-- > 0;) {
    al[i] = (h.old_stps[i] * q).sum() * h.ro[i];
    q = q - h.old_dirs[i] * al[i];
  }
  Tensor r = q * h.H_diag;
  for (size_t i = 0; i < n; ++i)
    r = r + h.old_stps[i] * (al[i] - (h.old_dirs[i] * r).sum() * h.ro[i]);
  return r;
}

LBFGS::Evaluation LBFGS::search(const Closure& closure, const Evaluation& from, double gtd,
                                int64_t max_ls, int64_t& evaluations) {
  std::vector<Tensor> before;
  for (auto& p : params()) before.push_back(p.detach().clone());
  auto restore = [&] {
    for (size_t i = 0; i < before.size(); ++i) Tensor(params()[i]).copy_(before[i]);
  };
  auto evaluate = [&](double t) {
    add_direction(t, history_.d);
    Tensor loss;
    {
      const GradMode guard(true);
      loss = closure();
    }
    const Tensor g = gather_flat_grad();
    restore();
    return LinePoint{t, signed_loss(loss), inner_product(g, history_.d), g};
  };
  const LineSearch limits{largest(history_.d), options_.tolerance_change, max_ls};
  const LinePoint best =
      strong_wolfe(evaluate, {0, from.loss, gtd, from.grad}, history_.t, limits, evaluations);
  history_.t = best.t;
  add_direction(best.t, history_.d);
  return {best.f, best.g};
}

Tensor LBFGS::step(const Closure& closure) {
  recording::refuse("LBFGS decides by values how long a step is");
  check_all_options();
  const LBFGSOptions& o = options_;
  History& h = history_;
  auto call = [&] {
    const GradMode guard(true);
    return closure();
  };
  const Tensor first_loss = call();
  const NoGrad guard;
  const int64_t max_eval = o.max_eval ? o.max_eval : o.max_iter * 5 / 4;
  Evaluation now = {signed_loss(first_loss), gather_flat_grad()};
  int64_t evaluations = 1;
  ++h.func_evals;
  if (largest(now.grad) <= o.tolerance_grad) return first_loss;
  for (int64_t n_iter = 1; n_iter <= o.max_iter; ++n_iter) {
    const bool fresh = ++h.n_iter == 1;
    if (!fresh) remember(now.grad);
    h.d = fresh ? neg(now.grad) : direction(now.grad);
    h.prev_flat_grad = now.grad;
    const double previous = now.loss, gtd = inner_product(now.grad, h.d);
    h.t = fresh ? std::min(1.0, 1 / abs(now.grad).sum().item()) * o.lr : o.lr;
    if (gtd > -o.tolerance_change) break;
    int64_t more = 0;
    if (o.strong_wolfe) {
      now = search(closure, now, gtd, max_eval - evaluations, more);
    } else {
      add_direction(h.t, h.d);
      // The last gradient would be computed for nothing.
      if (n_iter != o.max_iter) {
        const double loss = signed_loss(call());
        now = {loss, gather_flat_grad()};
        more = 1;
      }
    }
    evaluations += more;
    h.func_evals += more;
    if (evaluations >= max_eval || largest(now.grad) <= o.tolerance_grad ||
        largest(h.d) * h.t <= o.tolerance_change ||
        std::abs(now.loss - previous) < o.tolerance_change)
      break;
  }
  return first_loss;
}

// ---- states

using detail::state_key;

OptimizerState LBFGS::state_dict() {
  OptimizerState state = Optimizer::state_dict();
  const History& h = history_;
  auto number = [&](const std::string& key, double value) {
    state.numbers.emplace_back(key, value);
  };
  number(state_key(0, "func_evals"), static_cast<double>(h.func_evals));
  number(state_key(0, "n_iter"), static_cast<double>(h.n_iter));
  if (h.n_iter == 0) return state;
  number(state_key(0, "t"), h.t);
  number(state_key(0, "H_diag"), h.H_diag);
  number(state_key(0, "history"), static_cast<double>(h.ro.size()));
  state.tensors.set(state_key(0, "d"), h.d);
  state.tensors.set(state_key(0, "prev_flat_grad"), h.prev_flat_grad);
  for (size_t i = 0; i < h.ro.size(); ++i) {
    number(fmt::format("state.0.ro.{}", i), h.ro[i]);
    state.tensors.set(fmt::format("state.0.old_dirs.{}", i), h.old_dirs[i]);
    state.tensors.set(fmt::format("state.0.old_stps.{}", i), h.old_stps[i]);
  }
  return state;
}

Tensor LBFGS::read_flat(const OptimizerState& state, const std::string& key) const {
  const Tensor* value = state.tensors.find(key);
  auto fail = [&](const std::string& why) {
    throw StateDictError(fmt::format("Error in loading state_dict for LBFGS: {}", why));
  };
  if (!value || !value->defined()) fail(fmt::format("it has no \"{}\"", key));
  if (value->shape() != Shape{numel()})
    fail(fmt::format("\"{}\" has shape {}, the parameters together {}", key, value->shape(),
                     Shape{numel()}));
  return value->detach().clone().to(flat_device()).to(flat_dtype()).wait();
}

std::function<void()> LBFGS::prepare_load(const OptimizerState& state) {
  const NoGrad guard;
  // The history is read first, and the rest by the base, which takes what is left.
  detail::StateNumbers numbers("LBFGS", state.numbers);
  History h;
  h.func_evals = numbers.take_count(state_key(0, "func_evals"), "a number of calls");
  h.n_iter = numbers.take_count(state_key(0, "n_iter"), "a number of iterations");
  size_t tensors = 0;
  if (h.n_iter > 0) {
    h.t = numbers.take(state_key(0, "t"));
    h.H_diag = numbers.take(state_key(0, "H_diag"));
    const auto count = numbers.take_count(state_key(0, "history"), "a number of steps");
    h.d = read_flat(state, state_key(0, "d"));
    h.prev_flat_grad = read_flat(state, state_key(0, "prev_flat_grad"));
    for (int64_t i = 0; i < count; ++i) {
      h.ro.push_back(numbers.take(fmt::format("state.0.ro.{}", i)));
      h.old_dirs.push_back(read_flat(state, fmt::format("state.0.old_dirs.{}", i)));
      h.old_stps.push_back(read_flat(state, fmt::format("state.0.old_stps.{}", i)));
    }
    tensors = 2 + 2 * h.ro.size();
  }
  if (tensors != state.tensors.size())
    numbers.fail("it holds tensors that do not belong to these parameters");
  OptimizerState rest;
  rest.numbers = numbers.left();
  return [this, finish = Optimizer::prepare_load(rest), h = std::move(h)]() mutable {
    finish();
    std::swap(history_, h);
  };
}

}  // namespace tenon::optim
