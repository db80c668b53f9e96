// Averages of a model's weights over its training, as torch.optim.swa_utils has them: stochastic
// weight averaging (Izmailov et al., arXiv:1803.05407) and exponential moving averages.
//
//   optim::swa_utils::AveragedModel average(net);                                    // SWA
//   optim::swa_utils::AveragedModel ema(net, optim::swa_utils::get_ema_avg_fn(0.99));  // EMA
//   … optimizer.step(); average.update_parameters(net);
//   optim::swa_utils::update_bn(loader, average);
//   Tensor y = average(x);
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <tenon/core/grad_mode.h>
#include <tenon/modules/module.h>
#include <tenon/modules/optim/lr_scheduler.h>

namespace tenon::optim::swa_utils {

// A function that returns the new average from that over `num_averaged` models, an i64 scalar on
// the device of the tensors, and a further value of the same shape.
using AverageFn =
    std::function<Tensor(const Tensor& average, const Tensor& value, const Tensor& num_averaged)>;
// Returns the function of a plain average, (num_averaged average + value) / (num_averaged + 1).
TENON_API AverageFn get_swa_avg_fn();
// Returns the function decay * average + (1 - decay) * value. Throws a ValueError unless decay is
// in [0, 1].
TENON_API AverageFn get_ema_avg_fn(double decay = 0.999);

namespace detail {

TENON_API void average_into(nn::ModuleRef target, nn::ModuleRef source, const AverageFn& avg_fn,
                            bool use_buffers, const Tensor& num_averaged);

// Resets the running statistics of all batch normalizations, and lets them average over all
// batches until the end of the scope, in which the whole module is in training mode.
class TENON_API BatchNormAverages {
 public:
  explicit BatchNormAverages(nn::ModuleRef module);
  ~BatchNormAverages();
  BatchNormAverages(const BatchNormAverages&) = delete;
  // Returns whether there is a batch normalization with running statistics.
  bool any() const { return !momenta_.empty(); }

 private:
  std::vector<std::pair<std::optional<double>*, std::optional<double>>> momenta_;
  std::vector<std::pair<bool*, bool>> training_;
};

}  // namespace detail

// A copy of a model whose parameters are averages of those that update_parameters was given. The
// first call copies them. Buffers are copied at each call, or averaged as well if `use_buffers` is
// true and they are floating.
template <class M>
struct AveragedModel final : nn::Module<AveragedModel<M>> {
  // Makes a deep copy of the model, which `avg_fn` averages.
  explicit AveragedModel(const M& model, AverageFn avg_fn = get_swa_avg_fn(),
                         bool use_buffers = false)
      : module(nn::clone(model)),
        n_averaged(zeros({}, {.dtype = i64})),
        avg_fn_(std::move(avg_fn)),
        use_buffers_(use_buffers) {}

  // Returns the result of a call of the averaged model, which may take any arguments.
  template <class... A>
  decltype(auto) forward(A&&... args) {
    return module(std::forward<A>(args)...);
  }
  // Takes the model's present parameters into the average, without waiting for them. Throws a
  // ValueError or ShapeError, and changes nothing, for a model with other parameters or buffers.
  void update_parameters(const M& model) {
    detail::average_into(module, model, avg_fn_, use_buffers_, n_averaged);
  }
  void fields(nn::FieldVisitor& v) { v("module", module), v("n_averaged", n_averaged); }

  M module;               // the averaged model
  nn::Buffer n_averaged;  // i64 scalar: the number of models in the average

 private:
  AverageFn avg_fn_;
  bool use_buffers_;
};

// Computes the running statistics of all batch normalizations of a model again, as averages over
// the batches of the loader: an average of weights has none of its own. The model is in training
// mode meanwhile, dropout included, as in PyTorch. A batch is a tensor, or a data::Batch, of which
// `data` is the input; it is moved to the device, if one is given. A model without running
// statistics is not called.
template <class Loader, class M>
void update_bn(Loader&& loader, M& model, std::optional<Device> device = std::nullopt) {
  const NoGrad guard;
  const detail::BatchNormAverages averages(model);
  if (!averages.any()) return;
  for (auto&& batch : loader) {
    const Tensor x = [&]() -> Tensor {
      if constexpr (requires { batch.data; })
        return batch.data;
      else
        return batch;
    }();
    model(device ? x.to(*device) : x);
  }
}

// The rate goes to swa_lr, finite and at least 0, in anneal_epochs epochs, at least 0, along a
// cosine ("cos") or evenly ("linear"), and stays there. The constructor throws a ValueError for an
// argument outside its range.
class TENON_API SWALR final : public LRScheduler {
 public:
  SWALR(Optimizer& optimizer, double swa_lr, int64_t anneal_epochs = 10,
        const std::string& anneal_strategy = "cos");

 protected:
  double first_lr(size_t, double lr) override { return anneal_epochs_ ? lr : swa_lr_; }
  double next_lr(size_t group, double lr) override;
  void take_over() override { begin_at_present_rates(); }
  std::vector<SchedulerNumber> numbers() override;
  std::vector<std::pair<std::string, std::string>> texts() const override;

 private:
  double part(int64_t epoch) const;

  double swa_lr_;
  int64_t anneal_epochs_;
  bool cosine_;
};

}  // namespace tenon::optim::swa_utils
