#include <cmath>
#include <map>
#include <unordered_set>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/base/number_text.h>
#include <tenon/modules/optim/optimizer.h>
#include <tenon/modules/repr.h>

namespace tenon::optim {

namespace {

std::string state_key(size_t index, const char* what) {
  return "state." + std::to_string(index) + "." + what;
}
std::string group_key(size_t group, const char* what) {
  return "param_groups." + std::to_string(group) + "." + what;
}

}  // namespace

Optimizer::Optimizer(const char* name, std::vector<std::vector<Tensor>> groups)
    : name_(name), groups_(std::move(groups)) {
  std::unordered_set<const void*> seen;
  for (auto& group : groups_) {
    if (group.empty())
      throw ValueError(std::string(name_) +
                       ": got an empty list of parameters; does the model have any?");
    states_.emplace_back(group.size());
    for (auto& p : group) {
      if (!p.defined())
        throw ValueError(std::string(name_) + ": a parameter is an undefined tensor");
      std::string what = std::string(name_) + ": the parameter of shape " + p.shape().str();
      if (!p.is_leaf())
        throw ValueError(what + " is the result of an operator; only leaves can be optimised");
      if (!is_floating_point(p.dtype()))
        throw DTypeError(what + " is of type " + std::string(name_of(p.dtype())) +
                         "; it has to be floating");
      if (!seen.insert(p.impl().get()).second)
        throw ValueError(what + " is given twice; it would be stepped twice");
    }
  }
  if (groups_.empty()) throw ValueError(std::string(name_) + ": got no group of parameters");
}

Optimizer::~Optimizer() = default;

void Optimizer::require(bool ok, const char* what, double value, const char* wanted) const {
  nn::require(ok, name_, what, value, wanted);
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

double Optimizer::lr(size_t group) {
  params(group);  // checks the index
  return *options_of(group)[0].number;
}

void Optimizer::set_lr(double lr) {
  for (size_t g = 0; g < groups_.size(); ++g) set_lr(lr, g);
}

void Optimizer::set_lr(double lr, size_t group) {
  params(group);
  nn::require_not_negative(lr, name_, "lr");
  *options_of(group)[0].number = lr;
}

std::vector<Optimizer::Bucket>& Optimizer::collect(size_t group) {
  NoGrad guard;
  auto wanted = slots(group);
  for (size_t i = 0; i < groups_[group].size(); ++i) {
    const Tensor& p = groups_[group][i];
    Tensor grad = p.grad();
    if (!grad.defined()) continue;
    State& state = states_[group][i];
    size_t at = 0;
    bool fresh = !wanted.empty() && wanted[0].used && !state.slots[0].defined();
    auto fits = [&](const Bucket& b) {
      return b.params.empty() || (b.device == p.device() && b.dtype == p.dtype() &&
                                  b.step == state.step && b.fresh == fresh);
    };
    while (at < buckets_.size() && !fits(buckets_[at])) ++at;
    if (at == buckets_.size()) buckets_.emplace_back();
    Bucket& b = buckets_[at];
    b.device = p.device(), b.dtype = p.dtype(), b.step = state.step, b.fresh = fresh;
    b.states.push_back(&state);
    b.params.push_back(p);
    b.grads.push_back(std::move(grad));
    for (size_t s = 0; s < wanted.size(); ++s) {
      if (!wanted[s].used) continue;
      Tensor slot = state.slots[s];
      if (!slot.defined())
        slot = zeros(p.shape(), {.dtype = p.dtype(), .device = p.device()});
      else if (slot.device() != b.device || slot.dtype() != b.dtype)  // the model has moved since
        slot = slot.to(b.device).to(b.dtype);
      b.slots[s].push_back(std::move(slot));
    }
  }
  while (!buckets_.empty() && buckets_.back().params.empty()) buckets_.pop_back();
  return buckets_;
}

void Optimizer::keep_slots(Bucket& b) {
  for (size_t i = 0; i < b.states.size(); ++i) {
    ++b.states[i]->step;
    for (size_t s = 0; s < std::size(b.slots); ++s)
      if (!b.slots[s].empty()) b.states[i]->slots[s] = b.slots[s][i];
  }
}

// They are kept for their own memory, but a gradient that waits here for the next step would keep
// its memory for nothing.
void Optimizer::forget_buckets() {
  for (auto& b : buckets_) {
    b.states.clear(), b.params.clear(), b.grads.clear();
    for (auto& s : b.slots) s.clear();
  }
}

OptimizerState Optimizer::state_dict() {
  OptimizerState result;
  size_t index = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    result.numbers.emplace_back(group_key(g, "params"), static_cast<double>(groups_[g].size()));
    for (auto& o : options_of(g))
      result.numbers.emplace_back(group_key(g, o.name), o.number ? *o.number : double(*o.flag));
    auto named = slots(g);
    for (State& state : states_[g]) {
      if (state.step)
        result.numbers.emplace_back(state_key(index, "step"), static_cast<double>(state.step));
      for (size_t s = 0; s < named.size(); ++s)
        if (state.slots[s].defined())
          result.tensors.set(state_key(index, named[s].name), state.slots[s]);
      ++index;
    }
  }
  return result;
}

void Optimizer::load_state_dict(const OptimizerState& from) {
  NoGrad guard;
  std::string failed = std::string("Error in loading state_dict for ") + name_ + ": ";
  std::map<std::string, double> numbers(from.numbers.begin(), from.numbers.end());
  auto take = [&](const std::string& key, std::optional<double> absent) {
    auto found = numbers.find(key);
    if (found == numbers.end()) {
      if (absent) return *absent;
      throw StateDictError(
          failed + "it has no \"" + key +
          "\", so it is not of an optimizer of this kind with these parameter groups");
    }
    double value = found->second;
    if (!std::isfinite(value))
      throw StateDictError(failed + "\"" + key + "\" is " + number_text(value) +
                           ", which is no finite number");
    numbers.erase(found);
    return value;
  };
  std::vector<std::pair<Option, double>> options;
  auto states = states_;
  size_t index = 0, tensors_used = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    double count = take(group_key(g, "params"), {});
    if (count != static_cast<double>(groups_[g].size()))
      throw StateDictError(failed + "group " + std::to_string(g) + " has " +
                           std::to_string(groups_[g].size()) + " parameters here and " +
                           number_text(count) + " there");
    for (auto& o : options_of(g)) options.emplace_back(o, take(group_key(g, o.name), {}));
    auto named = slots(g);
    for (size_t i = 0; i < groups_[g].size(); ++i, ++index) {
      const Tensor& p = groups_[g][i];
      const double step = take(state_key(index, "step"), 0.0);
      if (!(step >= 0 && step <= 0x1p53 && step == std::floor(step)))
        throw StateDictError(failed + "\"" + state_key(index, "step") + "\" is " +
                             number_text(step) + ", which is no number of steps");
      states[g][i] = {.step = static_cast<int64_t>(step), .slots = {}};
      for (size_t s = 0; s < named.size(); ++s) {
        auto key = state_key(index, named[s].name);
        const Tensor* value = from.tensors.find(key);
        if (!value) continue;
        ++tensors_used;
        if (value->shape() != p.shape())
          throw StateDictError(failed + "\"" + key + "\" has shape " + value->shape().str() +
                               ", the parameter " + p.shape().str());
        states[g][i].slots[s] = value->detach().clone().to(p.device()).to(p.dtype());
      }
    }
  }
  if (!numbers.empty())
    throw StateDictError(failed + "unexpected \"" + numbers.begin()->first + "\"");
  if (tensors_used != from.tensors.size())
    throw StateDictError(failed + "it holds tensors that are no state of these parameters");
  states_ = std::move(states);
  for (auto& [option, value] : options) {
    if (option.number) *option.number = value;
    if (option.flag) *option.flag = value != 0;
  }
}

}  // namespace tenon::optim
