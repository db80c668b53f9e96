// The loss of a classifier with its gradient, and the steps of SGD.
#include <cmath>
#include <vector>

#include <tenon/plugins/sdk/requests/loss.h>
#include <tenon/plugins/sdk/requests/optimizer.h>

#include "kernels.h"

namespace accelerator {
namespace {

using sdk::LossReduction;

sdk::CrossEntropyRequest read_loss(const sdk::Request& request) {
  const auto r = sdk::CrossEntropyRequest::from(request);
  if (r.dtype != TN_F32) sdk::refuse_dtype(r.dtype);
  // What is refused here the core computes of other operators, if they are all there.
  if (r.smoothing != 0) sdk::unsupported("label smoothing");
  if (r.weighted) sdk::unsupported("weights of classes");
  return r;
}

void check_labels(const sdk::CrossEntropyRequest& r, const int64_t* labels) {
  for (int64_t i = 0; i < r.n; ++i)
    if (labels[i] != r.ignore && (labels[i] < 0 || labels[i] >= r.c))
      throw sdk::Error(TN_CODE_OUT_OF_RANGE,
                       sdk::text("label {} in row {} lies outside [0, {})", labels[i], i, r.c),
                       {{"row", std::to_string(i)},
                        {"label", std::to_string(labels[i])},
                        {"classes", std::to_string(r.c)}});
}

// Each row's loss is log(sum(exp(x))) - x[label]. The largest of a row is taken off first, so that
// exp cannot overflow, and is kept for the gradient with the logarithm of the sum.
void loss_forward(const sdk::CrossEntropyRequest& r, const tn_run& run) {
  const float* logits = input(run, 0);
  const auto* labels = static_cast<const int64_t*>(run.inputs[1]);
  float *loss = output(run, 0), *tops = output(run, 1), *log_sums = tops + r.n;
  check_labels(r, labels);
  double total = 0, count = 0;
  for (int64_t i = 0; i < r.n; ++i) {
    const float* x = logits + i * r.c;
    float top = r.c > 0 ? x[0] : 0;
    for (int64_t j = 1; j < r.c; ++j) top = x[j] > top || x[j] != x[j] ? x[j] : top;
    double sum = 0;
    for (int64_t j = 0; j < r.c; ++j) sum += std::exp(double{x[j]} - top);
    tops[i] = top;
    log_sums[i] = static_cast<float>(std::log(sum));
    const bool counts = labels[i] != r.ignore;
    const double row = counts ? std::log(sum) - (double{x[labels[i]]} - top) : 0;
    if (r.reduction == LossReduction::none) loss[i] = static_cast<float>(row);
    total += row;
    count += counts;
  }
  *output(run, 2) = static_cast<float>(count);
  if (r.reduction != LossReduction::none)
    *loss = static_cast<float>(r.reduction == LossReduction::mean ? total / count : total);
}

void loss_backward(const sdk::CrossEntropyRequest& r, const tn_run& run) {
  const float *g = input(run, 0), *logits = input(run, 1), *tops = input(run, 4),
              *log_sums = tops + r.n;
  const auto* labels = static_cast<const int64_t*>(run.inputs[2]);
  check_labels(r, labels);
  for (int64_t i = 0; i < r.n; ++i) {
    const float* x = logits + i * r.c;
    float* gx = output(run, 0) + i * r.c;
    const float scale = labels[i] == r.ignore                ? 0
                        : r.reduction == LossReduction::none ? g[i]
                        : r.reduction == LossReduction::mean ? *g / *input(run, 5)
                                                             : *g;
    for (int64_t j = 0; j < r.c; ++j)
      gx[j] = labels[i] == r.ignore ? 0 : scale * std::exp(x[j] - tops[i] - log_sums[i]);
    if (labels[i] != r.ignore) gx[labels[i]] -= scale;
  }
}

template <void Loss(const sdk::CrossEntropyRequest&, const tn_run&)>
tn_plan* make_loss(tn_device*, const sdk::Request& request) {
  const auto r = read_loss(request);
  return sdk::make_plan(
      [r](const tn_run& run) { Loss(r, run); },
      {.workspace_bytes = 0, .cost_ns = 500 + static_cast<uint64_t>(r.n * r.c) * 10});
}

const sdk::Kernel losses({"cross_entropy"}, make_loss<loss_forward>);
const sdk::Kernel loss_gradients({"cross_entropy_backward"}, make_loss<loss_backward>);

// One step of all parameters. Formulas: PyTorch's documentation of torch.optim.SGD.
tn_plan* make_sgd(tn_device*, const sdk::Request& request) {
  require_f32(request);
  const auto r = sdk::SgdRequest::from(request);
  std::vector<int64_t> sizes;
  uint64_t all = 0;
  for (size_t i = 0; i < r.n; ++i) {
    sizes.push_back(sdk::numel(request.input(i)));
    all += static_cast<uint64_t>(sizes.back());
  }
  return sdk::make_plan(
      [r, sizes](const tn_run& run) {
        const auto c = r.numbers<float>(run.scalars);
        for (size_t p = 0; p < r.n; ++p) {
          float* value = output(run, p);
          const float* gradient = input(run, r.n + p);
          float* buffer = r.momentum ? output(run, r.n + p) : nullptr;
          for (int64_t i = 0; i < sizes[p]; ++i) {
            float g = c.sign * gradient[i] + c.decay * value[i];
            if (buffer) {
              buffer[i] = c.first ? g : c.momentum * buffer[i] + c.keep * g;
              g = r.nesterov ? g + c.momentum * buffer[i] : buffer[i];
            }
            value[i] -= c.lr * g;
          }
        }
      },
      {.workspace_bytes = 0, .cost_ns = 200 + all * 2});
}

const sdk::Kernel steps({"sgd_step"}, make_sgd);

}  // namespace
}  // namespace accelerator
