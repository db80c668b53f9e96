// The operator of interpolation (core/ops/pooling/taps.h).
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/indexing/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pooling/taps.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// Tap `k` of places, and of weights so that they broadcast along `dim`.
Tensor place_of_tap(const Tensor& place, int64_t k) { return select(place, 0, k); }
Tensor weight_of_tap(const Tensor& weight, int64_t k, size_t dim, size_t rank) {
  Shape along = Shape::filled(rank, 1);
  along[dim] = shape_of(weight)[1];
  return select(weight, 0, k).reshape(along);
}

Tensor resample_composed(const Tensor& x, size_t dim, const Tensor& place, const Tensor& weight) {
  const size_t rank = shape_of(x).size();
  if (rank > 1 && dim + 1 == rank)
    return of_rows(
        x, [&](const Tensor& rows) { return resample_composed(rows, dim - 1, place, weight); });
  const Tensor from = contiguous(x);
  Tensor y;
  for (int64_t k = 0; k < shape_of(place)[0]; ++k) {
    const Tensor values = index_select(from, static_cast<int64_t>(dim), place_of_tap(place, k)),
                 factor = weight_of_tap(weight, k, dim, rank);
    y = k == 0 ? values * factor : addcmul(y, values, factor);
  }
  return y;
}

Tensor resample_backward_composed(const Tensor& g, const Shape& shape, size_t dim,
                                  const Tensor& place, const Tensor& weight) {
  const size_t rank = shape.size();
  if (rank > 1 && dim + 1 == rank) {
    Shape turned = shape;
    std::swap(turned[dim], turned[dim - 1]);
    return of_rows(g, [&](const Tensor& rows) {
      return resample_backward_composed(rows, turned, dim - 1, place, weight);
    });
  }
  Tensor gx;
  for (int64_t k = 0; k < shape_of(place)[0]; ++k) {
    const Tensor part = add_slices_at(shape, g * weight_of_tap(weight, k, dim, rank),
                                      static_cast<int64_t>(dim), place_of_tap(place, k));
    gx = k == 0 ? part : gx + part;
  }
  return gx;
}

size_t resampled_dim(const Attrs& attrs) { return static_cast<size_t>(attrs.get_int("dim")); }

void resample_backward_gradient(const GradContext& c, Grads g);
void decompose_resample_backward(const Call& call, Outputs& out) {
  out = {contiguous(resample_backward_composed(call.in(0), *call.shape, resampled_dim(call.attrs),
                                               call.in(1), call.in(2)))};
}
// | `resample_backward` | g, place, weight -> gx | `dim` | the same backwards: gx[place[k][i]] +=
//   weight[k][i] · g[i] |
const Op resample_backward_op{{
    .name = "resample_backward",
    .infer = infer_given_shape,
    .gradient = resample_backward_gradient,
    .saves_inputs = 6,
    .decompose = decompose_resample_backward,
}};

void infer_resample(Infer& infer) {
  Shape shape = shape_of(infer.in(0));
  shape[resampled_dim(infer.attrs)] = shape_of(infer.in(1))[1];
  infer.output(dtype_of(infer.in(0)), shape);
}
void resample_gradient(const GradContext& c, Grads g) {
  if (c.needs(0))
    g[0] = run_as(c.input_shape(0), resample_backward_op, {&c.grad(), &c.input(1), &c.input(2)},
                  Attrs().set("dim", c.attrs.get_int("dim")));
}
void decompose_resample(const Call& call, Outputs& out) {
  out = {
      contiguous(resample_composed(call.in(0), resampled_dim(call.attrs), call.in(1), call.in(2)))};
}
// | `resample` | x, place(taps,n) i64, weight(taps,n) -> y | `dim` int | sums along `dim`, whose
//   size becomes n: y[i] = sum over k of weight[k][i] · x[place[k][i]]; all but place have one
//   floating dtype. A place outside the dimension: TN_CODE_OUT_OF_RANGE |
const Op resample_op{{
    .name = "resample",
    .inputs = "x places weights",
    .infer = infer_resample,
    .gradient = resample_gradient,
    .saves_inputs = 6,
    .decompose = decompose_resample,
}};

// Both are linear, and the one is the gradient of the other.
void resample_backward_gradient(const GradContext& c, Grads g) {
  if (c.needs(0))
    g[0] = run(resample_op, {&c.grad(), &c.input(1), &c.input(2)},
               Attrs().set("dim", c.attrs.get_int("dim")));
}

}  // namespace

Tensor resample(const Tensor& x, size_t dim, const Taps& taps) {
  const auto n = static_cast<int64_t>(taps.place[0].size());
  std::vector<int64_t> place;
  std::vector<double> weight;
  for (size_t k = 0; k < taps.count(); ++k) {
    place.insert(place.end(), taps.place[k].begin(), taps.place[k].end());
    weight.insert(weight.end(), taps.weight[k].begin(), taps.weight[k].end());
  }
  const Device device = device_read_on(x);
  const Shape shape = {static_cast<int64_t>(taps.count()), n};
  const Tensor places = tensor(place, shape, {.device = device}),
               weights = tensor(weight, shape, {.dtype = dtype_of(x), .device = device});
  return run(resample_op, {&x, &places, &weights}, Attrs().set("dim", static_cast<int64_t>(dim)));
}

}  // namespace tenon
