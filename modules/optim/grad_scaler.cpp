#include <cmath>

#include <tenon/core/autocast.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/error.h>
#include <tenon/core/factories.h>
#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>
#include <tenon/modules/optim/grad_scaler.h>
#include <tenon/modules/optim/state.h>
#include <tenon/modules/repr.h>

namespace tenon::amp {

namespace {

// The gradients of one device.
struct OnDevice {
  Device device;
  std::vector<Tensor> gradients;
};

std::vector<OnDevice> gradients_of(const optim::Optimizer& optimizer) {
  std::vector<OnDevice> all;
  for (size_t g = 0; g < optimizer.num_groups(); ++g)
    for (auto& p : optimizer.params(g)) {
      Tensor gradient = p.grad();
      if (!gradient.defined()) continue;
      if (gradient.dtype() == f16)
        throw ValueError(fmt::format(
            "GradScaler.unscale_: attempting to unscale the f16 gradient of a parameter of shape "
            "{}, which f16 may not hold; keep the parameters in f32 and compute under an Autocast "
            "guard",
            p.shape()));
      auto place = all.begin();
      while (place != all.end() && place->device != gradient.device()) ++place;
      if (place == all.end()) place = all.insert(place, {gradient.device(), {}});
      place->gradients.push_back(std::move(gradient));
    }
  return all;
}

Tensor number(double value, Device device) { return full({}, value, {.device = device}); }

// Returns 1 if one of the elements is infinite or NaN, otherwise 0. The extremes show both, and
// finding them writes nothing of the size of a gradient.
Tensor found_in(const OnDevice& here) {
  std::vector<Tensor> extremes;
  for (auto& g : here.gradients) {
    if (g.numel() == 0) continue;
    for (const Tensor& extreme : {amax(g), amin(g)})
      // A product by 0 is NaN where the number is not finite, and fits into f32.
      extremes.push_back(g.dtype() == f64 ? (extreme * 0.0).to(f32) : extreme.to(f32));
  }
  if (extremes.empty()) return number(0, here.device);
  return logical_not(all(isfinite(stack(extremes)))).to(f32);
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options), first_scale_(options.init_scale) {
  check(options);
}

void GradScaler::check(const GradScalerOptions& o) {
  const auto above = [](double value, double least) {
    return std::isfinite(value) && value > least;
  };
  nn::require(above(o.init_scale, 0), "GradScaler", "init_scale", o.init_scale,
              "finite and above 0");
  nn::require(above(o.growth_factor, 1), "GradScaler", "growth_factor", o.growth_factor,
              "finite and above 1");
  nn::require(o.backoff_factor > 0 && o.backoff_factor < 1, "GradScaler", "backoff_factor",
              o.backoff_factor, "above 0 and below 1");
  nn::require(o.growth_interval >= 1, "GradScaler", "growth_interval",
              static_cast<double>(o.growth_interval), "at least 1");
}

void GradScaler::set_growth_factor(double factor) {
  auto changed = options_;
  changed.growth_factor = factor;
  check(changed);
  options_ = changed;
}

void GradScaler::set_backoff_factor(double factor) {
  auto changed = options_;
  changed.backoff_factor = factor;
  check(changed);
  options_ = changed;
}

void GradScaler::set_growth_interval(int64_t interval) {
  auto changed = options_;
  changed.growth_interval = interval;
  check(changed);
  options_ = changed;
}

Tensor GradScaler::scale(const Tensor& output) {
  if (!options_.enabled) return output;
  recording::refuse("a GradScaler decides by values whether a step is made");
  if (!output.defined()) throw ValueError("GradScaler.scale: the output is an undefined tensor");
  if (!is_floating_point(output.dtype()))
    throw DTypeError(fmt::format(
        "GradScaler.scale: an output of type {} has no gradient; give the loss, which is floating",
        output.dtype()));
  if (!scale_.defined()) {
    scale_ = number(first_scale_, output.device());
    growth_tracker_ = number(static_cast<double>(first_tracker_), output.device());
  }
  return output * scale_.to(output.device());
}

std::vector<Tensor> GradScaler::scale(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> scaled;
  for (auto& output : outputs) scaled.push_back(scale(output));
  return scaled;
}

const Tensor& GradScaler::checked_scale(const char* what) const {
  if (scale_.defined()) return scale_;
  throw ValueError(fmt::format(
      "GradScaler.{}: nothing was scaled yet; call scaler.scale(loss).backward() before", what));
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  const Tensor& scale = checked_scale("unscale_");
  Steps& steps = steps_[&optimizer];
  if (steps.stepped)
    throw ValueError(
        "GradScaler.unscale_: is called after step(); call it before, or update() first");
  if (steps.unscaled)
    throw ValueError(
        "GradScaler.unscale_: was already called for this optimizer since the last update()");
  const NoGrad not_recorded;
  const NoAutocast in_f32;
  const auto devices = gradients_of(optimizer);
  const Tensor inverse = reciprocal(scale.to(f64)).to(f32);
  for (auto& here : devices) {
    steps.found.push_back(found_in(here));
    const Tensor factor = inverse.to(here.device);
    for (auto& g : here.gradients) Tensor(g).copy_(g * factor);
  }
  steps.unscaled = true;
}

bool GradScaler::step(optim::Optimizer& optimizer) {
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  checked_scale("step");
  if (steps_[&optimizer].stepped)
    throw ValueError(
        "GradScaler.step: was already called for this optimizer since the last update()");
  if (!steps_[&optimizer].unscaled) unscale_(optimizer);
  Steps& steps = steps_[&optimizer];
  if (steps.found.empty()) {
    steps.unscaled = false;  // so that it can be called again once there are some
    throw ValueError(
        "GradScaler.step: none of the optimizer's parameters has a gradient; call "
        "scaler.scale(loss).backward() before");
  }
  bool finite = true;
  for (auto& found : steps.found) finite = finite && found.item() == 0;
  if (finite) optimizer.step();
  steps.stepped = true;
  return finite;
}

void GradScaler::update() {
  if (!options_.enabled) return;
  const Tensor& scale = checked_scale("update");
  const NoGrad not_recorded;
  const NoAutocast in_f32;
  std::vector<Tensor> found;
  for (auto& [optimizer, steps] : steps_)
    for (auto& each : steps.found) found.push_back(each.to(scale.device()));
  if (found.empty())
    throw ValueError(
        "GradScaler.update: no gradients were looked at since the last update(); call step() or "
        "unscale_() before");
  const Tensor bad = gt(amax(stack(found)), 0), count = growth_tracker_ + 1,
               full = ge(count, static_cast<double>(options_.growth_interval)),
               grown = scale * options_.growth_factor,
               larger = where(logical_and(full, isfinite(grown)), grown, scale);
  scale_ = where(bad, scale * options_.backoff_factor, larger);
  growth_tracker_ = where(logical_or(bad, full), 0.0, count);
  steps_.clear();
}

void GradScaler::update(double new_scale) {
  if (!options_.enabled) return;
  nn::require(std::isfinite(new_scale) && new_scale > 0, "GradScaler", "new_scale", new_scale,
              "finite and above 0");
  scale_ = number(new_scale, checked_scale("update").device());
  steps_.clear();
}

double GradScaler::get_scale() const {
  if (!options_.enabled) return 1;
  return scale_.defined() ? scale_.item() : first_scale_;
}

optim::SchedulerState GradScaler::state_dict() const {
  if (!options_.enabled) return {};
  const double tracker =
      growth_tracker_.defined() ? growth_tracker_.item() : static_cast<double>(first_tracker_);
  return {{{"scale", get_scale()},
           {"growth_factor", options_.growth_factor},
           {"backoff_factor", options_.backoff_factor},
           {"growth_interval", static_cast<double>(options_.growth_interval)},
           {"_growth_tracker", tracker}},
          {}};
}

std::function<void()> GradScaler::prepare_load(const optim::SchedulerState& state) {
  if (!options_.enabled) return [] {};
  optim::detail::StateNumbers numbers("GradScaler", state.numbers, "an enabled GradScaler");
  auto loaded = options_;
  loaded.init_scale = numbers.take("scale");
  loaded.growth_factor = numbers.take("growth_factor");
  loaded.backoff_factor = numbers.take("backoff_factor");
  loaded.growth_interval = numbers.take_count("growth_interval", "a number of steps");
  const int64_t tracker = numbers.take_count("_growth_tracker", "a number of steps");
  numbers.require_all_taken();
  try {
    check(loaded);
  } catch (const ValueError& e) {
    numbers.fail(e.what());
  }
  return [this, loaded, tracker] {
    options_ = loaded;
    first_scale_ = loaded.init_scale;
    first_tracker_ = tracker;
    scale_ = growth_tracker_ = Tensor();  // made again where the next output is
    steps_.clear();
  };
}

}  // namespace tenon::amp
