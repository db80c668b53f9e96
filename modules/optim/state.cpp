#include <cmath>
#include <limits>

#include <tenon/core/base/number_text.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/modules/optim/state.h>

namespace tenon::optim {

namespace detail {

std::string state_key(size_t index, const char* what) {
  return fmt::format("state.{}.{}", index, what);
}
std::string group_key(size_t group, const char* what) {
  return fmt::format("param_groups.{}.{}", group, what);
}

DType state_dtype(const Tensor& p) {
  return p.dtype() == f16 || p.dtype() == bf16 ? DType::f32 : p.dtype();
}

Tensor fresh_slot(const Tensor& p, double value) {
  return full(
      p.shape(), value,
      {.dtype = state_dtype(p), .device = p.device(), .memory_format = p.suggest_memory_format()});
}

void StateNumbers::fail(const std::string& why) const {
  throw StateDictError(fmt::format("Error in loading state_dict for {}: {}", owner_, why));
}

double StateNumbers::take(const std::string& key, std::optional<double> absent) {
  auto found = numbers_.find(key);
  if (found == numbers_.end()) {
    if (absent) return *absent;
    fail(fmt::format("it has no \"{}\", so it does not come from {}", key, source_));
  }
  const double value = found->second;
  if (!std::isfinite(value))
    fail(fmt::format("\"{}\" is {}, which is not a finite number", key, number_text(value)));
  numbers_.erase(found);
  return value;
}

int64_t StateNumbers::take_count(const std::string& key, const char* what,
                                 std::optional<double> absent) {
  const double value = take(key, absent);
  if (!(value >= 0 && value <= 0x1p53 && value == std::floor(value)))
    fail(fmt::format("\"{}\" is {}, which is not {}", key, number_text(value), what));
  return static_cast<int64_t>(value);
}

void StateNumbers::require_all_taken() const {
  if (!numbers_.empty()) fail(fmt::format("unexpected \"{}\"", numbers_.begin()->first));
}

}  // namespace detail

using detail::fresh_slot, detail::group_key, detail::state_key, detail::StateNumbers;

OptimizerState Optimizer::state_dict() {
  NoGrad guard;
  OptimizerState result;
  size_t index = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    result.numbers.emplace_back(group_key(g, "params"), static_cast<double>(groups_[g].size()));
    for (auto& o : options_of(g)) result.numbers.emplace_back(group_key(g, o.name), o.value());
    if (g < initial_lrs_.size() && !std::isnan(initial_lrs_[g]))
      result.numbers.emplace_back(group_key(g, "initial_lr"), initial_lrs_[g]);
    const auto named = slots(g);
    const auto memory = memories(g);
    for (size_t i = 0; i < states_[g].size(); ++i, ++index) {
      State& state = states_[g][i];
      if (state.step)
        result.numbers.emplace_back(state_key(index, "step"), static_cast<double>(state.step));
      for (size_t k = 0; state.step && k < memory.size(); ++k)
        result.numbers.emplace_back(state_key(index, memory[k].name), state.numbers[k]);
      if (state.master.defined())
        result.tensors.set(state_key(index, "master_param"), state.master);
      for (size_t s = 0; s < named.size(); ++s) {
        // An option that was switched on since the last step begins to use a slot.
        if (state.step && named[s].used && named[s].steady && !state.slots[s].defined())
          state.slots[s] = fresh_slot(groups_[g][i], named[s].initial);
        if (state.slots[s].defined())
          result.tensors.set(state_key(index, named[s].name), state.slots[s]);
      }
    }
  }
  return result;
}

namespace {

// Assigns the options of all groups, and the old ones again at the end of the scope.
template <class Option>
class TemporaryOptions {
 public:
  explicit TemporaryOptions(std::vector<std::pair<Option, double>> options)
      : options_(std::move(options)) {
    exchange();
  }
  ~TemporaryOptions() { exchange(); }
  TemporaryOptions(const TemporaryOptions&) = delete;
  TemporaryOptions& operator=(const TemporaryOptions&) = delete;

 private:
  void exchange() {
    for (auto& [option, value] : options_) {
      const double before = option.value();
      option.assign(value);
      value = before;
    }
  }

  std::vector<std::pair<Option, double>> options_;
};

// Whether nobody else has the tensor, or others of its memory.
bool has_own_memory(const Tensor& x) {
  return x.impl()->refs.load() == 1 && x.impl()->storage.unique();
}

}  // namespace

void Optimizer::load_state(size_t group, size_t i, size_t index, const OptimizerState& from,
                           detail::StateNumbers& numbers, State& state, size_t& used) {
  const Tensor& p = groups_[group][i];
  const DType dtype = detail::state_dtype(p);
  const auto step_key = state_key(index, "step");
  const int64_t step = numbers.take_count(step_key, "a number of steps", 0.0);
  state = {};
  state.step = step;
  const auto memory = memories(group);
  for (size_t k = 0; step > 0 && k < memory.size(); ++k)
    state.numbers[k] = numbers.take(state_key(index, memory[k].name));
  auto read = [&](const char* name, bool needed, bool steady) {
    const auto key = state_key(index, name);
    const Tensor* value = from.tensors.find(key);
    if (!value && needed && step > 0)
      numbers.fail(fmt::format("it has no \"{}\", although \"{}\" is {}", key, step_key, step));
    if (!value) return Tensor();
    ++used;
    if (!value->defined()) numbers.fail(fmt::format("\"{}\" is an undefined tensor", key));
    if (step == 0 && steady)
      numbers.fail(fmt::format("it has \"{}\", but no \"{}\"", key, step_key));
    if (value->shape() != p.shape())
      numbers.fail(
          fmt::format("\"{}\" has shape {}, the parameter {}", key, value->shape(), p.shape()));
    const Tensor own =
        from.give_memory && has_own_memory(*value) ? value->detach() : value->detach().clone();
    return own.to(p.device()).to(dtype).to(p.suggest_memory_format()).wait();
  };
  const auto named = slots(group);
  for (size_t s = 0; s < named.size(); ++s)
    state.slots[s] = read(named[s].name, named[s].used && named[s].steady, named[s].steady);
  // Not needed: the parameters of the optimizer that was saved may have been of another type.
  state.master = read("master_param", false, false);
}

std::vector<std::pair<Optimizer::Option, double>> Optimizer::load_options(
    detail::StateNumbers& numbers) {
  std::vector<std::pair<Option, double>> options;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const double count = numbers.take(group_key(g, "params"));
    if (count != static_cast<double>(groups_[g].size()))
      numbers.fail(fmt::format("group {} has {} parameters here and {} there", g, groups_[g].size(),
                               number_text(count)));
    for (auto& o : options_of(g)) {
      const auto key = group_key(g, o.name);
      const double value =
          o.whole ? static_cast<double>(numbers.take_count(key, "a whole number of at least 0"))
                  : numbers.take(key);
      if (o.flag && value != 0 && value != 1)
        numbers.fail(fmt::format("\"{}\" is {}; it has to be 0 or 1", key, number_text(value)));
      options.emplace_back(o, value);
    }
  }
  return options;
}

std::vector<double> Optimizer::load_initial_lrs(StateNumbers& numbers) const {
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> rates = initial_lrs_;
  rates.resize(groups_.size(), unknown);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const auto key = group_key(g, "initial_lr");
    const double rate = numbers.take(key, unknown);
    if (rate < 0) numbers.fail(fmt::format("\"{}\" is {}, below 0", key, number_text(rate)));
    if (!std::isnan(rate)) rates[g] = rate;
  }
  return rates;
}

std::function<void()> Optimizer::prepare_load(const OptimizerState& from) {
  NoGrad guard;
  StateNumbers numbers(name_, from.numbers);
  auto options = load_options(numbers);
  auto rates = load_initial_lrs(numbers);
  auto states = states_;
  {
    const TemporaryOptions loaded(options);  // they decide what tensors there have to be
    try {
      check_all_options();
    } catch (const ValueError& e) {
      numbers.fail(e.what());
    }
    size_t index = 0, used = 0;
    for (size_t g = 0; g < groups_.size(); ++g)
      for (size_t i = 0; i < groups_[g].size(); ++i, ++index)
        load_state(g, i, index, from, numbers, states[g][i], used);
    numbers.require_all_taken();
    if (used != from.tensors.size())
      numbers.fail("it holds tensors that do not belong to these parameters");
  }
  return [this, options = std::move(options), states = std::move(states),
          rates = std::move(rates)]() mutable {
    for (auto& [option, value] : options) option.assign(value);
    states_.swap(states);
    initial_lrs_.swap(rates);
    recording::changed();
  };
}

}  // namespace tenon::optim
