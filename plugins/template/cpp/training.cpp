// The loss of a classifier with its gradient, and the steps of SGD.
#include <cmath>
#include <string>
#include <vector>

#include <tenon/plugins/sdk/requests/loss.h>
#include <tenon/plugins/sdk/requests/optimizer.h>

#include "kernels.h"

namespace accelerator {
namespace {

using sdk::Reduction;

sdk::CrossEntropyRequest read_loss(const sdk::Request& request) {
  const auto r = sdk::CrossEntropyRequest::from(request);
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
template <class T>
void loss_forward(const sdk::CrossEntropyRequest& r, const tn_run& run) {
  const T* logits = input<T>(run, 0);
  const int64_t* labels = input<int64_t>(run, 1);
  T *loss = output<T>(run, 0), *tops = output<T>(run, 1), *log_sums = tops + r.n;
  check_labels(r, labels);
  double total = 0, count = 0;
  for (int64_t i = 0; i < r.n; ++i) {
    const T* x = logits + i * r.c;
    T top = r.c > 0 ? x[0] : 0;
    for (int64_t j = 1; j < r.c; ++j) top = x[j] > top || x[j] != x[j] ? x[j] : top;
    double sum = 0;
    for (int64_t j = 0; j < r.c; ++j) sum += std::exp(static_cast<double>(x[j]) - top);
    tops[i] = top;
    log_sums[i] = static_cast<T>(std::log(sum));
    const bool counts = labels[i] != r.ignore;
    const double row = counts ? std::log(sum) - (static_cast<double>(x[labels[i]]) - top) : 0;
    if (r.reduction == Reduction::none) loss[i] = static_cast<T>(row);
    total += row;
    count += counts;
  }
  *output<T>(run, 2) = static_cast<T>(count);
  if (r.reduction != Reduction::none)
    *loss = static_cast<T>(r.reduction == Reduction::mean ? total / count : total);
}

template <class T>
void loss_backward(const sdk::CrossEntropyRequest& r, const tn_run& run) {
  const T *g = input<T>(run, 0), *logits = input<T>(run, 1), *tops = input<T>(run, 4),
          *log_sums = tops + r.n;
  const int64_t* labels = input<int64_t>(run, 2);
  check_labels(r, labels);
  for (int64_t i = 0; i < r.n; ++i) {
    const T* x = logits + i * r.c;
    T* gx = output<T>(run, 0) + i * r.c;
    if (labels[i] == r.ignore) {
      std::fill_n(gx, r.c, T(0));
      continue;
    }
    const T scale = r.reduction == Reduction::none   ? g[i]
                    : r.reduction == Reduction::mean ? *g / *input<T>(run, 5)
                                                     : *g;
    for (int64_t j = 0; j < r.c; ++j) gx[j] = scale * std::exp(x[j] - tops[i] - log_sums[i]);
    gx[labels[i]] -= scale;
  }
}

template <bool Backward>
tn_plan* make_loss(tn_device*, const sdk::Request& request) {
  const auto r = read_loss(request);
  return sdk::with_float(r.dtype, [&]<class T>(T) {
    return sdk::make_plan(
        [r](const tn_run& run) {
          if constexpr (Backward)
            loss_backward<T>(r, run);
          else
            loss_forward<T>(r, run);
        },
        {.workspace_bytes = 0, .cost_ns = 500 + static_cast<uint64_t>(r.n * r.c) * 10});
  });
}

const sdk::Kernel losses({"cross_entropy"}, make_loss<false>);
const sdk::Kernel loss_gradients({"cross_entropy_backward"}, make_loss<true>);

// One step of all parameters. Formulas: PyTorch's documentation of torch.optim.SGD.
template <class T>
void step(const sdk::SgdRequest& r, const std::vector<int64_t>& sizes, const tn_run& run) {
  const auto c = r.numbers<T>(run.scalars);
  for (size_t p = 0; p < r.n; ++p) {
    T* value = output<T>(run, p);
    const T* gradient = input<T>(run, r.n + p);
    T* buffer = r.momentum ? output<T>(run, r.n + p) : nullptr;
    for (int64_t i = 0; i < sizes[p]; ++i) {
      T g = c.sign * gradient[i] + c.decay * value[i];
      if (buffer) {
        buffer[i] = c.first ? g : c.momentum * buffer[i] + c.keep * g;
        g = r.nesterov ? g + c.momentum * buffer[i] : buffer[i];
      }
      value[i] -= c.lr * g;
    }
  }
}

tn_plan* make_sgd(tn_device*, const sdk::Request& request) {
  const auto r = sdk::SgdRequest::from(request);
  std::vector<int64_t> sizes;
  uint64_t all = 0;
  for (size_t i = 0; i < r.n; ++i) {
    sizes.push_back(sdk::numel(request.input(i)));
    all += static_cast<uint64_t>(sizes.back());
  }
  return sdk::with_float(r.dtype, [&]<class T>(T) {
    return sdk::make_plan([r, sizes](const tn_run& run) { step<T>(r, sizes, run); },
                          {.workspace_bytes = 0, .cost_ns = 200 + all * 2});
  });
}

const sdk::Kernel steps({"sgd_step"}, make_sgd);

}  // namespace
}  // namespace accelerator
