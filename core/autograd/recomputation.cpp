#include <mutex>

#include <tenon/core/autograd/recomputation.h>
#include <tenon/core/base/per_thread.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/repeated_draws.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {

thread_local Recomputation::Scope* recomputed_now TENON_FAST_TLS = nullptr;

// Parameters and buffers exist anyway, so they need not be computed again. In a model on several
// devices each device has its replica, which only the parameter itself leads to.
bool is_parameter(const Tensor& t) { return t.is_leaf() && (t.requires_grad() || has_replicas(t)); }

}  // namespace

Recomputation::Recomputation(std::vector<Tensor> inputs, std::function<void()> again)
    : random_(random_state()), device_(default_device()), path_(current_path()) {
  std::erase_if(inputs, [](const Tensor& t) { return !t.defined(); });
  for (auto& t : inputs) versions_.push_back(t.version());
  kept_ = std::make_shared<const Kept>(Kept{std::move(inputs), std::move(again)});
}

Recomputation::Scope::Scope(Recomputation& recomputation, Run run)
    : of_(recomputation), run_(run), before_(recomputed_now) {
  recomputed_now = this;
}
Recomputation::Scope::~Scope() {
  recomputed_now = before_;
  if (run_ == first) of_.finished_ = true;
}

Recomputation::Scope* Recomputation::current() { return recomputed_now; }
void Recomputation::continue_in(Scope* scope) { recomputed_now = scope; }

std::shared_ptr<Recomputation> Recomputation::take(const Tensor& value, uint64_t& number) {
  if (!recomputed_now || is_parameter(value)) [[likely]]
    return nullptr;
  auto& of = recomputed_now->of_;
  if (recomputed_now->run_ == Scope::second) {
    of.put(*recomputed_now, value);
    return nullptr;
  }
  std::lock_guard lock(of.mutex_);
  number = of.values_.size();
  of.values_.push_back({value.shape(), value.dtype(), {}});
  ++of.wanted_;
  return of.shared_from_this();
}

void Recomputation::refuse_difference(const std::string& what) const {
  throw AutogradError(fmt::format(
      "checkpoint: the function computed something else in the backward pass than before: {}; it "
      "must do the same whenever it is called, and what it reads must not change in between{}",
      what, path_suffix()));
}

void Recomputation::put(Scope& scope, const Tensor& value) {
  std::lock_guard lock(mutex_);
  const size_t number = scope.next_++;
  if (number >= values_.size())
    refuse_difference(fmt::format("more than {} values", values_.size()));
  auto& slot = values_[number];
  if (slot.shape != value.shape() || slot.dtype != value.dtype())
    refuse_difference(fmt::format("value {} is {} {}, and was {} {}", number, value.dtype(),
                                  value.shape(), slot.dtype, slot.shape));
  if (slot.dropped) return;
  slot.tensor = with_history_ ? value : value.detach();
  slot.version = slot.tensor.version();
}

void Recomputation::require_same_inputs(std::span<const Tensor> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].version() != versions_[i])
      throw AutogradError(fmt::format(
          "checkpoint: input {} of shape {} is needed to compute the function again, but "
          "has been changed in place (version {}, expected {}); change a clone() of it, "
          "or change it after backward(){}",
          i, inputs[i].shape(), inputs[i].version(), versions_[i], path_suffix()));
}

void Recomputation::run_again(const Kept& kept) {
  const ModulePath path(path_);
  require_same_inputs(kept.inputs);
  const DeviceGuard device(device_);
  const RepeatedDraws random(random_);
  const GradMode record(true);
  const AutocastState::Guard autocast(autocast_);
  Scope scope(*this, Scope::second);
  kept.again();
  if (scope.next_ < values_.size())
    refuse_difference(fmt::format("{} values where there were {}", scope.next_, values_.size()));
}

void Recomputation::prepare() {
  if (!finished_)
    throw AutogradError(fmt::format(
        "checkpoint: the function runs a backward pass through what it has computed itself, which "
        "a checkpoint cannot compute again; call it without checkpoint(){}",
        path_suffix()));
  std::lock_guard lock(computing_);
  const bool with_history = grad_enabled();
  if (there_ && (with_history_ || !with_history)) return;
  std::shared_ptr<const Kept> kept;
  {
    std::lock_guard values(mutex_);
    kept = kept_;
  }
  if (!kept) return;  // another pass has freed everything meanwhile, which its nodes report
  there_ = false;
  with_history_ = with_history;
  run_again(*kept);
  there_ = true;
}

Tensor Recomputation::value(uint64_t number) const {
  std::lock_guard lock(mutex_);
  const Value& value = values_[number];
  if (value.tensor.defined() && value.tensor.version() != value.version)
    throw AutogradError(fmt::format(
        "checkpoint: value {} of shape {} is needed to compute the gradient but has been changed "
        "in "
        "place (version {}, expected {}); change a clone() of it, or change it after backward(){}",
        number, value.shape, value.tensor.version(), value.version, path_suffix()));
  return value.tensor;
}

void Recomputation::drop(uint64_t number) {
  Tensor ended;  // destroyed when the lock is free
  std::shared_ptr<const Kept> kept;
  std::lock_guard lock(mutex_);
  values_[number].dropped = true;
  ended = std::move(values_[number].tensor);
  if (--wanted_ == 0) kept.swap(kept_);
}

}  // namespace tenon
