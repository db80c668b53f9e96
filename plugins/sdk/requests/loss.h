// "cross_entropy", the losses of differences ("mse_loss" and the like) and their gradients, read
// and checked once for every plugin. All tensors are contiguous.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// Says how the losses of elements or rows are combined: not at all, by their mean or by their sum.
// Members stand in the order of the core's (core/ops/loss.h).
enum class Reduction { none, mean, sum };

// A request of a cross entropy: logits (n, c), a target of n class numbers, and what the loss of a
// row is weighted with.
struct CrossEntropyRequest {
  // The dtype of the logits, and the numbers of rows and classes.
  tn_dtype dtype;
  int64_t n, c;
  // Rows with this target do not count.
  int64_t ignore;
  Reduction reduction;
  // The attribute "label_smoothing".
  double smoothing;
  // True if there is a weight for each class.
  bool weighted;

  // Reads "cross_entropy" (logits, target, weight? -> loss, normalizer, total) or
  // "cross_entropy_backward" (g, logits, target, weight?, normalizer, total -> glogits). A plan
  // checks the targets when it runs.
  static CrossEntropyRequest from(const Request& request);

 private:
  // Requires one value of type `t` for each row if `rows` is true, otherwise one value.
  void require_values(const tn_tensor_desc& d, bool rows, tn_dtype t, const char* what) const {
    if (d.dtype != t || !(rows ? d.rank == 1 && d.shape[0] == n : numel(d) == 1))
      invalid("{} must be {} of {}", what, rows ? "one value for each row" : "a scalar",
              dtype_name(t));
    require_contiguous(d);
  }
};

// Returns what the attribute "reduction" names. Throws TN_CODE_INVALID_ARGUMENT for another word.
inline Reduction loss_reduction(const Request& request) {
  const auto name = request.get_string("reduction");
  if (name == "none") return Reduction::none;
  if (name == "mean") return Reduction::mean;
  if (name == "sum") return Reduction::sum;
  invalid("reduction is \"mean\", \"sum\" or \"none\", found \"" + std::string(name) + "\"");
}

inline CrossEntropyRequest CrossEntropyRequest::from(const Request& request) {
  require_op(request, {"cross_entropy", "cross_entropy_backward"});
  const bool backward = request.op() == "cross_entropy_backward";
  const size_t first = backward ? 1 : 0;
  auto &logits = request.input(first), &target = request.input(first + 1);
  if (logits.rank != 2) invalid("logits have 2 dimensions, found {}", logits.rank);
  const CrossEntropyRequest r{logits.dtype,
                              logits.shape[0],
                              logits.shape[1],
                              request.get_int("ignore_index"),
                              loss_reduction(request),
                              request.get_float("label_smoothing"),
                              request.has_input(first + 2)};
  if (target.rank != 1 || target.shape[0] != r.n || target.dtype != TN_I64)
    invalid("target must be {} i64 labels", r.n);
  if (r.weighted) {
    auto& weight = request.input(first + 2);
    if (weight.rank != 1 || weight.shape[0] != r.c || weight.dtype != r.dtype)
      invalid("weight must hold one value of the logits' dtype for each of {} classes", r.c);
    require_contiguous(weight);
  }
  require_contiguous(logits);
  require_contiguous(target);
  auto& normalizer = backward ? request.input(4) : request.output(1);
  auto& total = backward ? request.input(5) : request.output(2);
  r.require_values(backward ? request.input(0) : request.output(0), r.reduction == Reduction::none,
                   r.dtype, backward ? "the gradient" : "loss");
  const tn_dtype statistics = statistics_dtype(r.dtype);
  if (normalizer.dtype != statistics || normalizer.rank != 2 || normalizer.shape[0] != 2 ||
      normalizer.shape[1] != r.n)
    invalid("normalizer must be two values for each row, of shape (2, n), of {}",
            dtype_name(statistics));
  require_contiguous(normalizer);
  r.require_values(total, false, statistics, "total");
  if (backward && (!same_shape(request.output(0), logits) || request.output(0).dtype != r.dtype))
    invalid("the output has the logits' shape and dtype");
  return r;
}

// What a difference d counts as.
enum class Distance {
  squared,    // "mse_loss": d^2
  absolute,   // "l1_loss": |d|
  huber,      // "huber_loss": d^2 / 2 where |d| is below a limit, and linear beyond
  smooth_l1,  // "smooth_l1_loss": the same, divided by the limit
};

// A request of a loss of differences (x, y -> loss), or of its gradient (g, x, y -> gx), whose
// first scalar is a factor. The last scalar of "huber_loss", "smooth_l1_loss" and their gradients
// is the limit, above 0.
struct DistanceRequest {
  // The dtype of all tensors.
  tn_dtype dtype;
  // How many elements x and y have each.
  int64_t n;
  // What a difference counts as.
  Distance kind;
  // Whether a gradient is asked for.
  bool backward;
  // What the sum is divided by; 1 for a gradient, whose factor is scalar 0 of the run.
  double divisor;
  // Whether each element has a loss of its own (reduction "none"); false for a gradient.
  bool each;

  // Reads "mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss" or "…_backward" of one of these.
  // Throws TN_CODE_INVALID_ARGUMENT if tensors do not fit together, and TN_CODE_UNSUPPORTED for
  // tensors that are not contiguous.
  static DistanceRequest from(const Request& request);

  // Returns whether there is a limit.
  bool has_limit() const { return kind == Distance::huber || kind == Distance::smooth_l1; }
  // Returns the limit from the scalars of a run, and 0 where there is none.
  double limit(const tn_run& run) const { return has_limit() ? run.scalars[backward].f : 0; }
};

inline DistanceRequest DistanceRequest::from(const Request& request) {
  require_op(request, {"mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "mse_loss_backward",
                       "l1_loss_backward", "huber_loss_backward", "smooth_l1_loss_backward"});
  const auto op = request.op();
  const Distance kind = op.starts_with("mse")     ? Distance::squared
                        : op.starts_with("l1")    ? Distance::absolute
                        : op.starts_with("huber") ? Distance::huber
                                                  : Distance::smooth_l1;
  const bool backward = op.ends_with("_backward");
  auto &x = request.input(backward), &y = request.input(backward + 1), &out = request.output(0);
  DistanceRequest r{x.dtype, numel(x), kind, backward, 1, false};
  if (y.dtype != r.dtype || out.dtype != r.dtype || !same_shape(x, y))
    invalid("x and y have one dtype and one shape, {}, found {}", shape_text(x), shape_text(y));
  require_contiguous(x);
  require_contiguous(y);
  require_contiguous(out);
  const Reduction reduction = backward ? Reduction::sum : loss_reduction(request);
  r.each = reduction == Reduction::none;
  const tn_tensor_desc& loss = backward ? request.input(0) : out;
  if (r.each && !same_shape(loss, x)) invalid("without a reduction, losses have the shape of x");
  if (loss.dtype != r.dtype || (!r.each && numel(loss) != 1))
    invalid("the loss and its gradient are one number of {}", dtype_name(r.dtype));
  require_scalars(request, static_cast<uint32_t>(backward) + (r.has_limit() ? 1 : 0));
  if (backward) {
    if (!same_shape(out, x)) invalid("the output has the shape of x");
    return r;
  }
  if (reduction == Reduction::mean) r.divisor = static_cast<double>(r.n);
  return r;
}

}  // namespace tenon::sdk
