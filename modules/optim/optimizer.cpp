#include <cmath>
#include <map>
#include <optional>
#include <unordered_set>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/base/number_text.h>
#include <tenon/core/format.h>
#include <tenon/modules/optim/optimizer.h>
#include <tenon/modules/repr.h>

namespace tenon::optim {

namespace {

std::string state_key(size_t index, const char* what) {
  return fmt::format("state.{}.{}", index, what);
}
std::string group_key(size_t group, const char* what) {
  return fmt::format("param_groups.{}.{}", group, what);
}

Tensor fresh_slot(const Tensor& p) {
  return zeros(p.shape(), {.dtype = p.dtype(), .device = p.device()});
}

}  // namespace

Optimizer::Optimizer(const char* name, std::vector<std::vector<Tensor>> groups)
    : name_(name), groups_(std::move(groups)) {
  std::unordered_set<const void*> seen;
  for (auto& group : groups_) {
    if (group.empty())
      throw ValueError(
          fmt::format("{}: got an empty list of parameters; does the model have any?", name_));
    states_.emplace_back(group.size());
    for (auto& p : group) {
      if (!p.defined())
        throw ValueError(fmt::format("{}: a parameter is an undefined tensor", name_));
      auto what = [&] { return fmt::format("{}: the parameter of shape {}", name_, p.shape()); };
      if (!p.is_leaf())
        throw ValueError(what() + " is the result of an operator; only leaves can be optimised");
      if (!is_floating_point(p.dtype()))
        throw DTypeError(fmt::format("{} is of type {}; it has to be floating", what(), p.dtype()));
      if (!seen.insert(p.impl().get()).second)
        throw ValueError(what() + " is given twice; it would be stepped twice");
    }
  }
  if (groups_.empty()) throw ValueError(fmt::format("{}: got no group of parameters", name_));
}

Optimizer::~Optimizer() = default;

void Optimizer::require(bool ok, const char* what, double value, const char* wanted) const {
  nn::require(ok, name_, what, value, wanted);
}

void Optimizer::require_not_negative(double value, const char* what) const {
  nn::require_not_negative(value, name_, what);
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
        slot = fresh_slot(p);
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

// The buckets themselves are kept, because the next step needs their memory again. The tensors in
// them are dropped: a gradient that stayed here until the next step would occupy its memory in the
// meantime.
void Optimizer::forget_buckets() {
  for (auto& b : buckets_) {
    b.states.clear(), b.params.clear(), b.grads.clear();
    for (auto& s : b.slots) s.clear();
  }
}

OptimizerState Optimizer::state_dict() {
  NoGrad guard;
  OptimizerState result;
  size_t index = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    result.numbers.emplace_back(group_key(g, "params"), static_cast<double>(groups_[g].size()));
    for (auto& o : options_of(g))
      result.numbers.emplace_back(group_key(g, o.name), o.number ? *o.number : double(*o.flag));
    auto named = slots(g);
    for (size_t i = 0; i < states_[g].size(); ++i, ++index) {
      State& state = states_[g][i];
      if (state.step)
        result.numbers.emplace_back(state_key(index, "step"), static_cast<double>(state.step));
      for (size_t s = 0; s < named.size(); ++s) {
        // An option that was switched on since the last step begins to use a slot.
        if (state.step && named[s].used && named[s].steady && !state.slots[s].defined())
          state.slots[s] = fresh_slot(groups_[g][i]);
        if (state.slots[s].defined())
          result.tensors.set(state_key(index, named[s].name), state.slots[s]);
      }
    }
  }
  return result;
}

namespace {

// Assigns the options of all groups and, unless `keep` is called, assigns the old ones again.
template <class Option>
class NewOptions {
 public:
  explicit NewOptions(std::vector<std::pair<Option, double>> options)
      : options_(std::move(options)) {
    exchange();
  }
  ~NewOptions() {
    if (!kept_) exchange();
  }
  NewOptions(const NewOptions&) = delete;
  NewOptions& operator=(const NewOptions&) = delete;
  void keep() { kept_ = true; }

 private:
  void exchange() {
    for (auto& [option, value] : options_) {
      const double before = option.number ? *option.number : double(*option.flag);
      if (option.number) *option.number = value;
      if (option.flag) *option.flag = value != 0;
      value = before;
    }
  }

  std::vector<std::pair<Option, double>> options_;
  bool kept_ = false;
};

// The numbers of a state, each of which is taken once.
class StateNumbers {
 public:
  StateNumbers(const char* optimizer, const OptimizerState& state)
      : optimizer_(optimizer), numbers_(state.numbers.begin(), state.numbers.end()) {}

  [[noreturn]] void fail(const std::string& why) const {
    throw StateDictError(fmt::format("Error in loading state_dict for {}: {}", optimizer_, why));
  }
  // Returns a finite number. Without `absent` it has to be there.
  double take(const std::string& key, std::optional<double> absent = std::nullopt) {
    auto found = numbers_.find(key);
    if (found == numbers_.end()) {
      if (absent) return *absent;
      fail(
          fmt::format("it has no \"{}\", so it does not come from an optimizer of this kind with "
                      "these parameter groups",
                      key));
    }
    const double value = found->second;
    if (!std::isfinite(value))
      fail(fmt::format("\"{}\" is {}, which is not a finite number", key, number_text(value)));
    numbers_.erase(found);
    return value;
  }
  void require_all_taken() const {
    if (!numbers_.empty()) fail(fmt::format("unexpected \"{}\"", numbers_.begin()->first));
  }

 private:
  const char* optimizer_;
  std::map<std::string, double> numbers_;
};

}  // namespace

void Optimizer::load_state_dict(const OptimizerState& from) {
  NoGrad guard;
  StateNumbers numbers(name_, from);
  std::vector<std::pair<Option, double>> options;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const double count = numbers.take(group_key(g, "params"));
    if (count != static_cast<double>(groups_[g].size()))
      numbers.fail(fmt::format("group {} has {} parameters here and {} there", g, groups_[g].size(),
                               number_text(count)));
    for (auto& o : options_of(g)) {
      const auto key = group_key(g, o.name);
      const double value = numbers.take(key);
      if (o.flag && value != 0 && value != 1)
        numbers.fail(fmt::format("\"{}\" is {}; it has to be 0 or 1", key, number_text(value)));
      options.emplace_back(o, value);
    }
  }
  NewOptions loaded(std::move(options));  // which decide what tensors there have to be
  try {
    check_all_options();
  } catch (const ValueError& e) {
    numbers.fail(e.what());
  }
  auto states = states_;
  size_t index = 0, tensors_used = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const auto named = slots(g);
    for (size_t i = 0; i < groups_[g].size(); ++i, ++index) {
      const Tensor& p = groups_[g][i];
      const auto step_key = state_key(index, "step");
      const double step = numbers.take(step_key, 0.0);
      if (!(step >= 0 && step <= 0x1p53 && step == std::floor(step)))
        numbers.fail(fmt::format("\"{}\" is {}, which is not a number of steps", step_key,
                                 number_text(step)));
      states[g][i] = {.step = static_cast<int64_t>(step), .slots = {}};
      for (size_t s = 0; s < named.size(); ++s) {
        const auto key = state_key(index, named[s].name);
        const Tensor* value = from.tensors.find(key);
        if (!value && step > 0 && named[s].used && named[s].steady)
          numbers.fail(fmt::format("it has no \"{}\", although \"{}\" is {}", key, step_key,
                                   number_text(step)));
        if (!value) continue;
        ++tensors_used;
        if (!value->defined()) numbers.fail(fmt::format("\"{}\" is an undefined tensor", key));
        if (step == 0 && named[s].steady)
          numbers.fail(fmt::format("it has \"{}\", but no \"{}\"", key, step_key));
        if (value->shape() != p.shape())
          numbers.fail(
              fmt::format("\"{}\" has shape {}, the parameter {}", key, value->shape(), p.shape()));
        states[g][i].slots[s] = value->detach().clone().to(p.device()).to(p.dtype());
      }
    }
  }
  numbers.require_all_taken();
  if (tensors_used != from.tensors.size())
    numbers.fail("it holds tensors that do not belong to these parameters");
  states_ = std::move(states);
  loaded.keep();
}

}  // namespace tenon::optim
