#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <unordered_map>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/modules/optim/optimizer.h>
#include <tenon/modules/optim/state.h>
#include <tenon/modules/repr.h>

namespace tenon::optim {

namespace {

// Brings a slot to where its parameter is: the model may have moved since.
Tensor moved(const Tensor& slot, Device device, DType dtype) {
  if (slot.device() == device && slot.dtype() == dtype) return slot;
  return slot.to(device).to(dtype);
}

uint64_t number_of_values(const Tensor& t) { return impl_of(t).storage->values_number(); }

}  // namespace

Optimizer::Optimizer(const char* name, std::vector<std::vector<Tensor>> groups)
    : name_(name), alive_(std::make_shared<char>()), groups_(std::move(groups)) {
  std::unordered_map<const void*, size_t> seen;  // in which group
  for (size_t g = 0; g < groups_.size(); ++g) {
    const auto& group = groups_[g];
    if (group.empty())
      throw ValueError(
          fmt::format("{}: got an empty list of parameters{}; does the model have any?", name_,
                      groups_.size() > 1 ? fmt::format(" for group {} (counted from 0)", g) : ""));
    states_.emplace_back(group.size());
    for (auto& p : group) {
      if (!p.defined())
        throw ValueError(fmt::format("{}: a parameter is an undefined tensor", name_));
      auto what = [&] { return fmt::format("{}: the parameter of shape {}", name_, p.shape()); };
      if (!p.is_leaf())
        throw ValueError(what() + " is the result of an operator; only leaves can be optimised");
      if (!is_floating_point(p.dtype()))
        throw DTypeError(fmt::format("{} is of type {}; it has to be floating", what(), p.dtype()));
      if (const auto [first, is_new] = seen.emplace(p.impl().get(), g); !is_new)
        throw ValueError(fmt::format(
            "{} is given twice{}; it would be stepped twice", what(),
            groups_.size() > 1 ? fmt::format(", in groups {} and {}", first->second, g) : ""));
    }
  }
  if (groups_.empty()) throw ValueError(fmt::format("{}: got no group of parameters", name_));
}

Optimizer::~Optimizer() = default;

Optimizer::Replayed::Replayed(Optimizer& optimizer) : noted_(recording::here()) {
  if (!noted_) return;
  recording::here()->begin_host_part(optimizer.alive_, [&optimizer] { optimizer.step(); });
  recording::here()->describe_host_part(optimizer.name_,
                                        [&optimizer](const Storage& memory, std::string_view name) {
                                          return optimizer.number_of(memory, name);
                                        });
}
Optimizer::Replayed::~Replayed() {
  if (auto* recorder = noted_ ? recording::here() : nullptr) recorder->end_host_part();
}

// Nothing, where parameters that share the memory have different ones.
std::optional<double> Optimizer::number_of(const Storage& memory, std::string_view name) {
  const auto is_here = [&](const Tensor& t) {
    return t.defined() && impl_of(t).storage.get() == &memory;
  };
  const auto number = [&](size_t g, const State& state) -> std::optional<double> {
    if (name == "step") return static_cast<double>(state.step);
    if (name == "group") return static_cast<double>(g);
    for (auto& option : options_of(g))
      if (name == option.name) return option.value();
    return std::nullopt;
  };
  std::optional<double> found;
  for (size_t g = 0; g < groups_.size(); ++g)
    for (size_t i = 0; i < groups_[g].size(); ++i) {
      const State& state = states_[g][i];
      if (!is_here(groups_[g][i]) && !is_here(state.master) &&
          std::none_of(std::begin(state.slots), std::end(state.slots), is_here))
        continue;
      const auto here = number(g, state);
      if (!here || (found && *found != *here)) return std::nullopt;
      found = here;
    }
  return found;
}

void Optimizer::require(bool ok, const char* what, double value, const char* wanted) const {
  nn::require(ok, name_, what, value, wanted);
}

void Optimizer::require_not_negative(double value, const char* what) const {
  nn::require_not_negative(value, name_, what);
}

void Optimizer::require_fraction(double value, const char* what) const {
  require(value >= 0 && value < 1, what, value, "at least 0 and below 1");
}

void Optimizer::require_adam_options(double lr, const std::array<double, 2>& betas, double eps,
                                     double weight_decay) const {
  require_not_negative(lr, "lr");
  require_fraction(betas[0], "betas[0]");
  require_fraction(betas[1], "betas[1]");
  require_not_negative(eps, "eps");
  require_not_negative(weight_decay, "weight_decay");
}

void Optimizer::zero_grad(bool set_to_none) {
  NoGrad guard;
  for (auto& group : groups_)
    for (auto& p : group) {
      if (set_to_none)
        p.set_grad(Tensor());
      else if (Tensor grad = p.grad(); grad.defined())
        p.set_grad(zeros_like(grad));
    }
}

void Optimizer::refuse_group(size_t group) const {
  throw IndexError(fmt::format("{}: there is no group {} of parameters; it has {}, counted from 0",
                               name_, group, groups_.size()));
}

double Optimizer::lr(size_t group) { return *options_of(checked(group))[0].number; }

void Optimizer::set_lr(double lr) {
  for (size_t g = 0; g < groups_.size(); ++g) set_lr(lr, g);
}

void Optimizer::set_lr(double lr, size_t group) {
  checked(group);
  recording::refuse("a learning rate is set");
  nn::require_not_negative(lr, name_, "lr");
  *options_of(group)[0].number = lr;
}

double Optimizer::initial_lr(size_t group) {
  checked(group);
  initial_lrs_.resize(groups_.size(), std::numeric_limits<double>::quiet_NaN());
  if (std::isnan(initial_lrs_[group])) initial_lrs_[group] = lr(group);
  return initial_lrs_[group];
}

void Optimizer::set_initial_lr(double lr, size_t group) {
  initial_lr(group);
  nn::require_not_negative(lr, name_, "initial_lr");
  initial_lrs_[group] = lr;
}

void Optimizer::Option::assign(double value) const {
  if (number) *number = value;
  if (flag) *flag = value != 0;
  if (whole) *whole = static_cast<int64_t>(value);
}

double* Optimizer::number_option(const std::string& name, size_t group) {
  for (auto& option : options_of(checked(group)))
    if (name == option.name) return option.number;
  return nullptr;
}

Tensor Optimizer::step(const Closure& closure) {
  const GradMode guard(true);
  const Tensor loss = closure();
  step();
  return loss;
}

namespace {

// The master weights of a parameter whose values are not those of the last step: where they still
// round to the parameter they stay, elsewhere they take its value.
Tensor follow(const Tensor& master, const Tensor& p) {
  const Tensor values = p.detach().to(f32);
  if (!master.defined() || master.shape() != p.shape()) return values.contiguous();
  const Tensor known = moved(master, p.device(), f32);
  return where(eq(known.to(p.dtype()), p.detach()), known, values);
}

}  // namespace

void Optimizer::add_to_bucket(const Tensor& p, const Tensor& grad, State& state,
                              const std::vector<Slot>& wanted, const std::vector<Memory>& numbers) {
  const DType dtype = detail::state_dtype(p);
  const bool half = dtype != p.dtype();
  const bool fresh = !wanted.empty() && wanted[0].used && !state.slots[0].defined();
  std::array<double, 2> values = {};
  for (size_t k = 0; k < numbers.size(); ++k)
    values[k] = state.step ? state.numbers[k] : numbers[k].initial;
  auto fits = [&](const Bucket& b) {
    return b.params.empty() || (b.device == p.device() && b.dtype == dtype &&
                                b.step == state.step && b.fresh == fresh && b.numbers == values);
  };
  size_t at = 0;
  while (at < buckets_.size() && !fits(buckets_[at])) ++at;
  if (at == buckets_.size()) buckets_.emplace_back();
  Bucket& b = buckets_[at];
  b.device = p.device(), b.dtype = dtype, b.step = state.step, b.fresh = fresh;
  b.numbers = values;
  if (half && (!state.master.defined() || state.seen != number_of_values(p)))
    state.master = follow(state.master, p);
  if (!half) state.master = Tensor();
  b.states.push_back(&state);
  b.params.push_back(half ? state.master : p);
  b.halves.push_back(half ? p : Tensor());
  b.grads.push_back(half ? grad.to(f32) : grad);
  for (size_t s = 0; s < wanted.size(); ++s) {
    if (!wanted[s].used) continue;
    const Tensor& slot = state.slots[s];
    b.slots[s].push_back(slot.defined() ? moved(slot, b.device, b.dtype)
                                        : detail::fresh_slot(p, wanted[s].initial));
  }
}

std::vector<Optimizer::Bucket>& Optimizer::collect(size_t group) {
  NoGrad guard;
  const auto wanted = slots(group);
  const auto numbers = memories(group);
  for (size_t i = 0; i < groups_[group].size(); ++i) {
    const Tensor& p = groups_[group][i];
    const Tensor grad = p.grad();
    if (grad.defined()) add_to_bucket(p, grad, states_[group][i], wanted, numbers);
  }
  while (!buckets_.empty() && buckets_.back().params.empty()) buckets_.pop_back();
  return buckets_;
}

void Optimizer::keep_slots(Bucket& b) {
  NoGrad guard;
  for (size_t i = 0; i < b.states.size(); ++i) {
    State& state = *b.states[i];
    ++state.step;
    state.numbers = b.numbers;
    for (size_t s = 0; s < std::size(b.slots); ++s)
      if (!b.slots[s].empty()) state.slots[s] = b.slots[s][i];
    if (!b.halves[i].defined()) continue;
    b.halves[i].copy_(b.params[i]);
    state.seen = number_of_values(b.halves[i]);
  }
}

// The buckets themselves are kept, because the next step needs their memory again. The tensors in
// them are dropped: a gradient that stayed here until the next step would occupy its memory in the
// meantime.
void Optimizer::forget_buckets() {
  for (auto& b : buckets_) {
    b.states.clear(), b.params.clear(), b.grads.clear(), b.halves.clear();
    for (auto& s : b.slots) s.clear();
  }
}

}  // namespace tenon::optim
