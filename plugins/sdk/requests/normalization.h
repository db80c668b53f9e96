// "batch_norm", "layer_norm", "rms_norm", "group_norm", "softmax" and "log_softmax" with their
// gradients, read and checked once for every plugin. All tensors are contiguous.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include <tenon/plugins/sdk/dims.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// Returns the type of weight, bias and running statistics, which is one for all of them: that of x
// or, where this is a half type, f32. `inputs` are their numbers; if there is none, it is that of
// x.
inline tn_dtype parameters_dtype(const Request& request, tn_dtype x,
                                 std::initializer_list<uint32_t> inputs) {
  for (const uint32_t i : inputs)
    if (request.has_input(i) && request.input(i).dtype == statistics_dtype(x))
      return statistics_dtype(x);
  return x;
}
// Returns the type of the gradients of weight and bias, for an x of this type: that of the weight,
// input 2. Without one, it is that of statistics.
inline tn_dtype gradients_dtype(const Request& request, tn_dtype x) {
  return request.has_input(2) ? parameters_dtype(request, x, {2}) : statistics_dtype(x);
}

// A request of a batch norm: x (n, c, …) seen as n x c x size. The statistics of one channel run
// over n and size.
struct BatchNormRequest {
  tn_dtype dtype;
  int64_t n, c, size;
  bool training;
  // Which inputs are there, and the attribute "eps" of the forward request.
  bool weight, bias;
  double eps;
  // The type of weight, bias and running statistics, and of gradients.
  tn_dtype parameters = dtype;

  // Returns the number of elements of x.
  int64_t numel() const { return n * c * size; }

  // Reads "batch_norm" or "batch_norm_backward".
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

// A tensor of a request as it has to be: its name, its number of elements, its dtype, and whether
// it may be absent.
struct Place {
  const char* name;
  int64_t numel;
  tn_dtype dtype;
  bool optional = false;
};
// Requires that the inputs and outputs of a request are as these places say, and contiguous.
inline void require_places(const Request& request, std::initializer_list<Place> inputs,
                           std::initializer_list<Place> outputs) {
  uint32_t i = 0;
  for (auto& place : inputs) {
    if (!place.optional || request.has_input(i))
      require_elements(request.input(i), place.numel, place.dtype, place.name);
    ++i;
  }
  require_outputs(request, outputs.size());
  i = 0;
  for (auto& place : outputs) {
    if (!place.optional || request.has_output(i))
      require_elements(request.output(i), place.numel, place.dtype, place.name);
    ++i;
  }
}

// A request of a layer norm: x seen as `rows` rows of the `size` elements that are normalized
// together.
struct LayerNormRequest {
  tn_dtype dtype;
  int64_t rows, size;
  // Which inputs are there, and the attribute "eps" of the forward request.
  bool weight, bias;
  double eps;
  // The type of weight and bias, and of their gradients.
  tn_dtype parameters = dtype;
  // False for "rms_norm", which has neither means nor a bias.
  bool centered = true;

  // Reads "layer_norm" or "rms_norm", or the gradient of one of them.
  static LayerNormRequest from(const Request& request);
};

inline LayerNormRequest LayerNormRequest::from(const Request& request) {
  require_op(request, {"layer_norm", "layer_norm_backward", "rms_norm", "rms_norm_backward"});
  const bool backward = request.op().ends_with("_backward"),
             centered = request.op().starts_with("layer_");
  auto& x = request.input(backward ? 1 : 0);
  const int64_t inner = request.get_int("normalized_ndim");
  if (inner < 1 || inner > x.rank)
    invalid("normalized_ndim {} of a tensor of {} dimensions", inner, x.rank);
  LayerNormRequest r{.dtype = x.dtype,
                     .rows = 1,
                     .size = 1,
                     .weight = request.has_input(backward ? 2 : 1),
                     .bias = centered && !backward && request.has_input(2),
                     .eps = backward ? 0 : request.get_float("eps"),
                     .centered = centered};
  for (uint32_t d = 0; d < x.rank; ++d) (d + inner < x.rank ? r.rows : r.size) *= x.shape[d];
  const tn_dtype t = r.dtype;
  r.parameters = backward ? gradients_dtype(request, t)
                          : parameters_dtype(request, t, {1, centered ? 2u : 1u});
  const int64_t all = r.rows * r.size;
  const Place values{"x", all, t}, weight{"weight", r.size, r.parameters, true},
      bias{"bias", r.size, r.parameters, true}, g{"the gradient", all, t},
      mean{"mean", r.rows, statistics_dtype(t)}, invstd{"invstd", r.rows, statistics_dtype(t)};
  const auto optional = [](Place place) { return place.optional = true, place; };
  if (backward && centered)
    require_places(request, {g, values, weight, mean, invstd}, {optional(values), weight, bias});
  else if (backward)
    require_places(request, {g, values, weight, invstd}, {optional(values), weight});
  else if (centered)
    require_places(request, {values, weight, bias}, {values, optional(mean), optional(invstd)});
  else
    require_places(request, {values, weight}, {values, optional(invstd)});
  return r;
}

// A request of a group norm: x (n, c, …) seen as n images of c planes of `size` elements, of which
// groups of c / groups planes are normalized together.
struct GroupNormRequest {
  tn_dtype dtype;
  int64_t n, c, size, groups;
  // Which inputs are there, and the attribute "eps" of the forward request.
  bool weight, bias;
  double eps;
  // The type of weight and bias, and of their gradients.
  tn_dtype parameters = dtype;

  // Returns the number of groups of all images.
  int64_t rows() const { return n * groups; }
  // Returns the number of channels of a group.
  int64_t channels() const { return c / groups; }
  // Returns the number of elements of a group.
  int64_t row_size() const { return channels() * size; }

  // Reads "group_norm" or "group_norm_backward".
  static GroupNormRequest from(const Request& request);
};

inline GroupNormRequest GroupNormRequest::from(const Request& request) {
  require_op(request, {"group_norm", "group_norm_backward"});
  const bool backward = request.op() == "group_norm_backward";
  auto& x = request.input(backward ? 1 : 0);
  if (x.rank < 2) invalid("input has at least 2 dimensions, found {}", x.rank);
  GroupNormRequest r{.dtype = x.dtype,
                     .n = x.shape[0],
                     .c = x.shape[1],
                     .size = 1,
                     .groups = request.get_int("num_groups"),
                     .weight = request.has_input(backward ? 2 : 1),
                     .bias = !backward && request.has_input(2),
                     .eps = backward ? 0 : request.get_float("eps")};
  if (r.groups < 1 || r.c % r.groups) invalid("{} groups of {} channels", r.groups, r.c);
  for (uint32_t d = 2; d < x.rank; ++d) r.size *= x.shape[d];
  const tn_dtype t = r.dtype;
  r.parameters = backward ? gradients_dtype(request, t) : parameters_dtype(request, t, {1, 2});
  const Place values{"x", r.n * r.c * r.size, t}, weight{"weight", r.c, r.parameters, true},
      bias{"bias", r.c, r.parameters, true}, g{"the gradient", values.numel, t},
      mean{"mean", r.rows(), statistics_dtype(t)}, invstd{"invstd", r.rows(), statistics_dtype(t)};
  const auto optional = [](Place place) { return place.optional = true, place; };
  if (backward)
    require_places(request, {g, values, weight, mean, invstd}, {optional(values), weight, bias});
  else
    require_places(request, {values, weight, bias}, {values, optional(mean), optional(invstd)});
  return r;
}

// A request of a softmax: x, or g and y of a gradient, seen as lines along the dimension that is
// normalized.
struct SoftmaxRequest : Lines {
  tn_dtype dtype;
  bool logarithm, backward;

  // Reads "softmax", "log_softmax" or one of their gradients.
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
