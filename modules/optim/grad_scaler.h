// Scaling of the loss, so that gradients in f16 are not lost below its smallest numbers.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/modules/optim/lr_scheduler.h>
#include <tenon/modules/optim/optimizer.h>

namespace tenon::amp {

struct GradScalerOptions {
  double init_scale = 65536;       // the first scale; finite and above 0
  double growth_factor = 2;        // multiplies the scale after `growth_interval` updates; above 1
  double backoff_factor = 0.5;     // multiplies it after a step with an infinity or NaN; in (0, 1)
  int64_t growth_interval = 2000;  // the updates in a row without one, at least 1
  bool enabled = true;             // if false, nothing is scaled, and every step is made
};

// Multiplies the loss by a scale, and the gradients by its inverse before a step, as
// torch.amp.GradScaler. A step whose gradients hold an infinity or a NaN is left out, and the scale
// becomes smaller. bf16 has the range of f32 and needs no scaler.
//
//   amp::GradScaler scaler;
//   for (auto& [x, y] : loader) {
//     optimizer.zero_grad();
//     Tensor loss = autocast(f16, [&] { return cross_entropy(net(x), y); });
//     scaler.scale(loss).backward();
//     scaler.unscale_(optimizer);  // only where the gradients are looked at, for instance to clip
//     nn::utils::clip_grad_norm_(net.parameters(), 1.0);
//     scaler.step(optimizer);
//     scaler.update();
//   }
//
// Several losses and optimizers take one scaler: scale each loss, call unscale_ and step for each
// optimizer, and update once at the end. An optimizer has to live until then. The scale stays on
// the device; only `step` waits, for the one number that decides whether the step is made.
class TENON_API GradScaler {
 public:
  // Makes a scaler with these options. Throws a ValueError for an option outside its range, and for
  // a growth factor that is not finite.
  explicit GradScaler(const GradScalerOptions& options = {});

  // Returns the output, of any shape, multiplied by the scale. The first call decides on which
  // device the scale is. Throws a ValueError for an undefined tensor, and a DTypeError for one that
  // is not floating.
  Tensor scale(const Tensor& output);
  // Returns each output multiplied by the scale, as scale(output) does.
  std::vector<Tensor> scale(const std::vector<Tensor>& outputs);
  // Divides the gradients of the optimizer's parameters by the scale, in place. `step` does it if
  // this was not called. Throws a ValueError if it was done since the last update, after `step`, if
  // nothing was scaled yet, and for a gradient in f16, which may not hold the result: keep the
  // parameters in f32 and compute under an Autocast guard.
  void unscale_(optim::Optimizer& optimizer);
  // Makes a step of the optimizer unless one of the gradients was infinite or NaN, and returns
  // whether it did. Throws a ValueError if it was called since the last update, if nothing was
  // scaled yet, or if none of the optimizer's parameters has a gradient.
  bool step(optim::Optimizer& optimizer);
  // Multiplies the scale by the backoff factor if a step was left out since the last update, and by
  // the growth factor if none was for `growth_interval` updates and the product is finite. Throws a
  // ValueError if there was no step and no unscale_ since then.
  void update();
  // Sets the scale, after which steps may be made again, as after update(). Throws a ValueError
  // unless it is finite and above 0, and if nothing was scaled yet.
  void update(double new_scale);

  // Returns the scale, for which it waits; 1 if the scaler is not enabled.
  double get_scale() const;
  // Returns whether the scaler is enabled.
  bool is_enabled() const { return options_.enabled; }
  // Returns the factor by which the scale grows.
  double get_growth_factor() const { return options_.growth_factor; }
  // Returns the factor by which the scale shrinks.
  double get_backoff_factor() const { return options_.backoff_factor; }
  // Returns the number of updates in a row after which the scale grows.
  int64_t get_growth_interval() const { return options_.growth_interval; }
  // Sets the factor by which the scale grows. Throws a ValueError unless it is finite and above 1.
  void set_growth_factor(double factor);
  // Sets the factor by which the scale shrinks. Throws a ValueError unless it is in (0, 1).
  void set_backoff_factor(double factor);
  // Sets the number of updates after which the scale grows. Throws a ValueError if it is below 1.
  void set_growth_interval(int64_t interval);

  // Returns "scale", "growth_factor", "backoff_factor", "growth_interval" and "_growth_tracker",
  // for which it waits; nothing if the scaler is not enabled. Call it after update().
  optim::SchedulerState state_dict() const;
  // Goes on from a state. Throws a StateDictError, and changes nothing, if it lacks a number, has
  // another one, or one outside its range. A scaler that is not enabled takes any state.
  void load_state_dict(const optim::SchedulerState& state) { prepare_load(state)(); }
  // Does all of load_state_dict that can fail, and changes nothing. The function that it returns
  // does the rest.
  [[nodiscard]] std::function<void()> prepare_load(const optim::SchedulerState& state);

 private:
  // What happened with an optimizer since the last update.
  struct Steps {
    bool unscaled = false, stepped = false;
    std::vector<Tensor> found;  // f32, of each device: 0 where all gradients were finite
  };
  const Tensor& checked_scale(const char* what) const;
  static void check(const GradScalerOptions& options);

  GradScalerOptions options_;
  Tensor scale_, growth_tracker_;  // of one element in f32, once something was scaled
  double first_scale_;             // until then
  int64_t first_tracker_ = 0;
  std::unordered_map<const optim::Optimizer*, Steps> steps_;
};

}  // namespace tenon::amp
