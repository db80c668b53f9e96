// "batch_norm", "layer_norm", "softmax" and "log_softmax" with their gradients, read and checked
// once for every plugin. All tensors are contiguous.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/plugins/sdk/dims.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// The type of weight, bias and running statistics, which is one for all of them: that of x or,
// where this is a half type, f32. `inputs` are their numbers; where there is none, it is that of x.
inline tn_dtype parameters_dtype(const Request& request, tn_dtype x,
                                 std::initializer_list<uint32_t> inputs) {
  for (const uint32_t i : inputs)
    if (request.has_input(i) && request.input(i).dtype == statistics_dtype(x))
      return statistics_dtype(x);
  return x;
}
// The type of the gradients of weight and bias, for an x of this type: that of the weight, input 2.
// Without one, that of statistics.
inline tn_dtype gradients_dtype(const Request& request, tn_dtype x) {
  return request.has_input(2) ? parameters_dtype(request, x, {2}) : statistics_dtype(x);
}

// x (n, c, …) seen as n x c x size; the statistics of one channel run over n and size.
struct BatchNormRequest {
  tn_dtype dtype;
  int64_t n, c, size;
  bool training;
  bool weight, bias;            // the inputs are there
  double eps;                   // of the forward request
  tn_dtype parameters = dtype;  // the type of weight, bias and running statistics, and of gradients

  int64_t numel() const { return n * c * size; }

  // Of "batch_norm" or "batch_norm_backward".
  static BatchNormRequest from(const Request& request);

 private:
  void check_forward(const Request& request) const;
  void check_backward(const Request& request) const;
};

inline BatchNormRequest BatchNormRequest::from(const Request& request) {
  require_op(request, {"batch_norm", "batch_norm_backward"});
  const bool backward = request.op() == "batch_norm_backward";
  auto& x = request.input(backward ? 1 : 0);
  if (x.rank < 2) invalid("input has at least 2 dimensions, found {}", x.rank);
  BatchNormRequest r{x.dtype,
                     x.shape[0],
                     x.shape[1],
                     1,
                     request.get_bool("training"),
                     request.has_input(backward ? 2 : 1),
                     !backward && request.has_input(2),
                     backward ? 0 : request.get_float("eps")};
  for (uint32_t d = 2; d < x.rank; ++d) r.size *= x.shape[d];
  r.parameters = backward ? gradients_dtype(request, r.dtype)
                          : parameters_dtype(request, r.dtype, {1, 2, 3, 4});
  require_elements(x, r.numel(), r.dtype, "x");
  backward ? r.check_backward(request) : r.check_forward(request);
  return r;
}

inline void BatchNormRequest::check_forward(const Request& request) const {
  require_elements(request.output(0), numel(), dtype, "y");
  constexpr const char* names[] = {"x", "weight", "bias", "running_mean", "running_var"};
  for (size_t i = 1; i < 5; ++i)
    if (request.has_input(i)) require_elements(request.input(i), c, parameters, names[i]);
  if (!training && !(request.has_input(3) && request.has_input(4)))
    invalid("without training it needs running_mean and running_var");
  require_outputs(request, 5);
  for (size_t i = 1; i < 5; ++i) {
    if (!request.has_output(i)) continue;
    require_elements(request.output(i), c, i < 3 ? statistics_dtype(dtype) : parameters,
                     "a statistic");
    if (i >= 3 && request.alias(i) != static_cast<int32_t>(i))
      invalid("outputs 3 and 4 are inputs 3 and 4, updated in place");
  }
}

inline void BatchNormRequest::check_backward(const Request& request) const {
  require_elements(request.input(0), numel(), dtype, "the gradient");
  if (weight) require_elements(request.input(2), c, parameters, "weight");
  require_elements(request.input(3), c, statistics_dtype(dtype), "mean");
  require_elements(request.input(4), c, statistics_dtype(dtype), "invstd");
  require_outputs(request, 3);
  constexpr const char* names[] = {"gx", "gweight", "gbias"};
  for (size_t i = 0; i < 3; ++i)
    if (request.has_output(i))
      require_elements(request.output(i), i == 0 ? numel() : c, i == 0 ? dtype : parameters,
                       names[i]);
}

// x seen as `rows` rows of the `size` elements that are normalised together.
struct LayerNormRequest {
  tn_dtype dtype;
  int64_t rows, size;
  bool weight, bias;            // the inputs are there
  double eps;                   // of the forward request
  tn_dtype parameters = dtype;  // the type of weight and bias, and of their gradients

  // Of "layer_norm" or "layer_norm_backward".
  static LayerNormRequest from(const Request& request);
};

inline LayerNormRequest LayerNormRequest::from(const Request& request) {
  require_op(request, {"layer_norm", "layer_norm_backward"});
  const bool backward = request.op() == "layer_norm_backward";
  auto& x = request.input(backward ? 1 : 0);
  const int64_t inner = request.get_int("normalized_ndim");
  if (inner < 1 || inner > x.rank)
    invalid("normalized_ndim {} of a tensor of {} dimensions", inner, x.rank);
  LayerNormRequest r{x.dtype,
                     1,
                     1,
                     request.has_input(backward ? 2 : 1),
                     !backward && request.has_input(2),
                     backward ? 0 : request.get_float("eps")};
  for (uint32_t d = 0; d < x.rank; ++d) (d + inner < x.rank ? r.rows : r.size) *= x.shape[d];
  struct Place {
    const char* name;
    int64_t n;
    tn_dtype dtype;
  };
  const int64_t all = r.rows * r.size;
  const tn_dtype t = r.dtype, statistics = statistics_dtype(t),
                 p = backward ? gradients_dtype(request, t) : parameters_dtype(request, t, {1, 2});
  r.parameters = p;
  const Place inputs[] = {{"x", all, t}, {"weight", r.size, p}, {"bias", r.size, p}},
              outputs[] = {{"y", all, t},
                           {"mean", r.rows, statistics},
                           {"invstd", r.rows, statistics}},
              back_inputs[] = {{"the gradient", all, t},
                               {"x", all, t},
                               {"weight", r.size, p},
                               {"mean", r.rows, statistics},
                               {"invstd", r.rows, statistics}},
              back_outputs[] = {{"gx", all, t}, {"gweight", r.size, p}, {"gbias", r.size, p}};
  require_outputs(request, 3);
  for (size_t i = 0; i < (backward ? 5 : 3); ++i) {
    const bool optional = backward ? i == 2 : i > 0;
    const Place& place = backward ? back_inputs[i] : inputs[i];
    if (!optional || request.has_input(i))
      require_elements(request.input(i), place.n, place.dtype, place.name);
  }
  for (size_t i = 0; i < 3; ++i) {
    const Place& place = backward ? back_outputs[i] : outputs[i];
    if (request.has_output(i) || (i == 0 && !backward))
      require_elements(request.output(i), place.n, place.dtype, place.name);
  }
  return r;
}

// x, or g and y of a gradient, seen as lines along the dimension that is normalised.
struct SoftmaxRequest : Lines {
  tn_dtype dtype;
  bool logarithm, backward;

  // Of "softmax", "log_softmax" or one of their gradients.
  static SoftmaxRequest from(const Request& request);
};

inline SoftmaxRequest SoftmaxRequest::from(const Request& request) {
  require_op(request, {"softmax", "log_softmax", "softmax_backward", "log_softmax_backward"});
  const bool backward = request.op().ends_with("_backward");
  auto& x = request.input(0);
  for (auto* d : {&request.input(backward ? 1 : 0), &request.output(0)}) {
    if (!same_shape(x, *d) || x.dtype != d->dtype) invalid("all tensors have one shape and dtype");
    require_contiguous(*d);
  }
  require_contiguous(x);
  return {Lines::of(x, dim_of(request, x)), x.dtype, request.op().starts_with("log_"), backward};
}

}  // namespace tenon::sdk
