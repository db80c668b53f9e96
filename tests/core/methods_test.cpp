// Methods of Tensor that have a function of the same name: both give the same, whatever the
// arguments; and a name that ends in `_` changes the tensor itself.
#include <cmath>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "places.h"

BOOST_AUTO_TEST_SUITE(methods_test)

using namespace tenon;
namespace f = tenon;

namespace {

using Parts = std::vector<Tensor>;
Parts parts(const Tensor& x) { return {x}; }
Parts parts(const ValuesIndices& x) { return {x.values, x.indices}; }
Parts parts(const std::pair<Tensor, Tensor>& x) { return {x.first, x.second}; }
Parts parts(const Parts& x) { return x; }
Parts parts(const Unique& x) {
  Parts found{x.values};
  for (const Tensor& more : {x.inverse, x.counts})
    if (more.defined()) found.push_back(more);
  return found;
}
Parts parts(const SlogDet& x) { return {x.sign, x.logabsdet}; }
Parts parts(const QR& x) { return {x.Q, x.R}; }
Parts parts(const SVD& x) { return {x.U, x.S, x.Vh}; }
Parts parts(bool x) { return {full({}, x)}; }

std::set<std::string>& tried() {
  static std::set<std::string> names;
  return names;
}

void require_same(const std::string& name, const Parts& found, const Parts& expected) {
  tried().insert(name);
  BOOST_TEST_REQUIRE(found.size() == expected.size(), name);
  for (size_t i = 0; i < found.size(); ++i) {
    BOOST_TEST((found[i].dtype() == expected[i].dtype()), name);
    BOOST_TEST((found[i].shape() == expected[i].shape()), name);
    const auto a = found[i].to_vector<double>(), b = expected[i].to_vector<double>();
    bool same = a.size() == b.size();
    for (size_t k = 0; same && k < a.size(); ++k)
      same = a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]));
    BOOST_TEST(same, name << ": " << found[i].str() << ", the function " << expected[i].str());
  }
}

// A method and the function of its name with the same arguments.
#define SAME(x, name, ...) \
  require_same(#name, parts((x).name(__VA_ARGS__)), parts(f::name((x)__VA_OPT__(, ) __VA_ARGS__)))

template <class Method>
void require_changed(const std::string& name, const Tensor& x, Method method,
                     const Tensor& expected) {
  Tensor changed = x.clone();
  BOOST_TEST(method(changed).is_same(changed), name);
  require_same(name, {changed}, {expected.to(x.dtype())});
}

// A method that changes its tensor, against the function without the underscore.
#define CHANGES(x, name, ...)                                                          \
  require_changed(                                                                     \
      #name "_", x, [](Tensor& t) -> const Tensor& { return t.name##_(__VA_ARGS__); }, \
      f::name((x)__VA_OPT__(, ) __VA_ARGS__))

// A matrix of which no two elements, rows or columns are alike.
const Tensor& x() {
  static const Tensor values =
      tensor<double>({0.3, -1.7, 0.9, 2.6, -0.4, 1.2, 0.05, -2.2, 3.1}, {3, 3});
  return values;
}
const Tensor& y() {
  static const Tensor values =
      tensor<double>({1.5, 0.7, -0.6, 1.1, 2.3, -1.9, 0.8, 0.4, -3.3}, {3, 3});
  return values;
}
const Tensor& row() {
  static const Tensor values = tensor<double>({0.5, -1.25, 2.0}, {3});
  return values;
}
// Between 0 and 1; above 1; whole numbers; truths; places.
const Tensor& unit() {
  static const Tensor values = tensor<double>({0.1, 0.8, 0.35, 0.6, 0.95, 0.2}, {2, 3});
  return values;
}
const Tensor& above() {
  static const Tensor values = unit() + 1.5;
  return values;
}
const Tensor& whole() {
  static const Tensor values = tensor<int64_t>({5, -3, 12, 7, 1, -8}, {2, 3});
  return values;
}
const Tensor& small() {
  static const Tensor values = tensor<int64_t>({1, 2, 3, 2, 1, 3}, {2, 3});
  return values;
}
const Tensor& mask() {
  static const Tensor values = gt(x(), 0.2);
  return values;
}
const Tensor& other_mask() {
  static const Tensor values = lt(y(), 1);
  return values;
}
const Tensor& places() {
  static const Tensor values = tensor<int64_t>({2, 0}, {2});
  return values;
}
const Tensor& grid() {
  static const Tensor values = tensor<int64_t>({2, 0, 1, 0, 1, 2}, {2, 3});
  return values;
}
const Tensor& with_nan() {
  static const Tensor values =
      tensor<double>({1.0, std::nan(""), -INFINITY, INFINITY, 0.5, -2.0}, {2, 3});
  return values;
}
const Tensor& positive() {  // definite
  static const Tensor values = matmul(x(), x().t()) + eye(3, {.dtype = f64});
  return values;
}
const Tensor& stack_of() {
  static const Tensor values = stack({x(), y()}, 0);
  return values;
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_elements) {
  for (const Tensor& t : {x(), unit().clone()}) {
    SAME(t, trunc), SAME(t, frac), SAME(t, expm1), SAME(t, log1p), SAME(t, exp2), SAME(t, log2);
    SAME(t, log10), SAME(t, tan), SAME(t, asin), SAME(t, acos), SAME(t, atan), SAME(t, sinh);
    SAME(t, cosh), SAME(t, asinh), SAME(t, atanh), SAME(t, sinc), SAME(t, erfc), SAME(t, erfinv);
    SAME(t, lgamma), SAME(t, digamma), SAME(t, logit), SAME(t, logit, 0.25), SAME(t, hardshrink);
    SAME(t, hardshrink, 0.75), SAME(t, neg), SAME(t, sign), SAME(t, floor), SAME(t, ceil);
    SAME(t, round), SAME(t, reciprocal), SAME(t, rsqrt), SAME(t, sin), SAME(t, cos), SAME(t, erf);
    SAME(t, exp), SAME(t, log), SAME(t, sqrt), SAME(t, square), SAME(t, abs), SAME(t, relu);
    SAME(t, sigmoid), SAME(t, tanh);
  }
  SAME(above(), acosh);
  SAME(with_nan(), isnan), SAME(with_nan(), isinf), SAME(with_nan(), isfinite);
  SAME(with_nan(), nan_to_num), SAME(with_nan(), nan_to_num, 3.0, 7.0, -9.0);
  SAME(whole(), bitwise_not), SAME(mask(), logical_not);
  SAME(x(), clamp, -0.5), SAME(x(), clamp, -0.5, 1.0), SAME(x(), clamp, std::nullopt, 1.0);
  SAME(x(), softmax, 0), SAME(x(), log_softmax, 0), SAME(x(), prelu, row());
}

BOOST_AUTO_TEST_CASE(of_two_operands) {
  SAME(x(), add, y()), SAME(x(), add, 3), SAME(x(), sub, y());
  SAME(x(), sub, 3), SAME(x(), mul, y()), SAME(x(), mul, 3);
  SAME(x(), div, y()), SAME(x(), div, 3), SAME(x(), maximum, y()), SAME(x(), minimum, y());
  SAME(x(), eq, y()), SAME(x(), eq, 0.3), SAME(x(), ne, y()), SAME(x(), ne, 0.3);
  SAME(x(), lt, y()), SAME(x(), lt, 0.3), SAME(x(), le, y()), SAME(x(), le, 0.3);
  SAME(x(), gt, y()), SAME(x(), gt, 0.3), SAME(x(), ge, y()), SAME(x(), ge, 0.3);
  SAME(unit(), pow, above()), SAME(unit(), pow, 1.5), SAME(x(), floor_divide, y());
  SAME(x(), floor_divide, -0.7), SAME(x(), remainder, y()), SAME(x(), remainder, -0.7);
  SAME(x(), fmod, y()), SAME(x(), fmod, -0.7), SAME(x(), copysign, y()), SAME(x(), copysign, -1);
  SAME(x(), heaviside, y()), SAME(x(), lerp, y(), 0.3), SAME(x(), lerp, y(), row());
  SAME(x(), addcmul, y(), row()), SAME(x(), addcmul, y(), row(), 2.5);
  SAME(x(), addcdiv, y(), row()), SAME(x(), addcdiv, y(), row(), 2.5);
  SAME(whole(), bitwise_and, small()), SAME(whole(), bitwise_and, 6);
  SAME(whole(), bitwise_or, small()), SAME(whole(), bitwise_or, 6);
  SAME(whole(), bitwise_xor, small()), SAME(whole(), bitwise_xor, 6);
  SAME(whole(), bitwise_left_shift, small()), SAME(whole(), bitwise_left_shift, 2);
  SAME(whole(), bitwise_right_shift, small()), SAME(whole(), bitwise_right_shift, 2);
  SAME(x(), isclose, y(), 0.5, 0.1), SAME(with_nan(), isclose, with_nan(), 0, 0, true);
  SAME(x(), allclose, y(), 0.5, 10.0), SAME(with_nan(), allclose, with_nan(), 0, 0, true);
  SAME(x(), equal, x().clone()), SAME(x(), equal, y()), SAME(unit(), logaddexp, above());
  SAME(x(), xlogy, above()[0]), SAME(x(), xlogy, 2.5), SAME(x(), atan2, y());
  SAME(x(), hypot, y()), SAME(mask(), logical_and, other_mask());
  SAME(mask(), logical_or, other_mask()), SAME(mask(), logical_xor, other_mask());
  require_same("add", parts(x().add(y(), 2.5)), parts(f::add(x(), f::mul(y(), 2.5))));
  require_same("sub", parts(x().sub(y(), 2.5)), parts(f::sub(x(), f::mul(y(), 2.5))));
  require_same("where", parts(x().where(mask(), y())), parts(f::where(mask(), x(), y())));
  require_same("where", parts(x().where(mask(), 7)), parts(f::where(mask(), x(), 7)));
  require_same("clamp_min", parts(x().clamp_min(0.1)), parts(f::clamp(x(), 0.1)));
  require_same("clamp_max", parts(x().clamp_max(0.1)), parts(f::clamp(x(), std::nullopt, 0.1)));
}

BOOST_AUTO_TEST_CASE(of_reductions) {
  SAME(x(), sum), SAME(x(), sum, {0}), SAME(x(), sum, {1}, true), SAME(x(), mean);
  SAME(x(), mean, {0}), SAME(x(), mean, {1}, true), SAME(x(), prod), SAME(x(), prod, {0});
  SAME(x(), prod, {1}, true), SAME(x(), amax), SAME(x(), amax, {0}), SAME(x(), amax, {1}, true);
  SAME(x(), amin), SAME(x(), amin, {0}), SAME(x(), amin, {1}, true), SAME(x(), var);
  SAME(x(), var, {0}, 0, true), SAME(x(), std), SAME(x(), std, {0}, 0, true), SAME(x(), norm);
  SAME(x(), norm, 3), SAME(x(), norm, 3, {0}, true), SAME(x(), logsumexp, {0}, true);
  SAME(mask(), any), SAME(mask(), any, {0}, true), SAME(mask(), all), SAME(mask(), all, {0}, true);
  SAME(x(), max), SAME(x(), max, 0, true), SAME(x(), min), SAME(x(), min, 0, true);
  SAME(x(), argmax), SAME(x(), argmax, 0, true), SAME(x(), argmin), SAME(x(), argmin, 0, true);
  SAME(with_nan(), nansum, {1}, true), SAME(with_nan(), nanmean, {1}, true);
  SAME(relu(x()), count_nonzero, {0}), SAME(x(), dist, y()), SAME(x(), dist, y(), 3);
  SAME(x(), renorm, 3, 1, 0.8), SAME(x(), aminmax), SAME(x(), aminmax, 0, true);
  SAME(x(), cumsum, 0), SAME(x(), cumsum, 1, f32), SAME(x(), cumprod, 0),
      SAME(x(), cumprod, 1, f32);
  SAME(x(), logcumsumexp, 0), SAME(x(), cummax, 0), SAME(x(), cummin, 0), SAME(x(), diff);
  SAME(x(), diff, 1, 0), SAME(x(), diff, 1, 0, row().unsqueeze(0), y());
}

BOOST_AUTO_TEST_CASE(of_order) {
  SAME(x(), sort), SAME(x(), sort, 0, true, true), SAME(x(), argsort), SAME(x(), argsort, 0, true);
  SAME(x(), topk, 2), SAME(x(), topk, 2, 0, false), SAME(x(), kthvalue, 2);
  SAME(x(), kthvalue, 2, 0, true), SAME(x(), median), SAME(x(), median, 0, true);
  SAME(with_nan(), nanmedian), SAME(with_nan(), nanmedian, 1, true), SAME(small(), mode);
  SAME(small(), mode, 0, true), SAME(x(), quantile, 0.3),
      SAME(x(), quantile, 0.3, 0, true, "lower");
  SAME(x(), quantile, unit()[0], 1, false, "higher"), SAME(with_nan(), nanquantile, 0.3, 1, true);
  SAME(with_nan(), nanquantile, unit()[0], 1, false, "nearest"), SAME(small(), unique);
  SAME(small(), unique, true, true, true), SAME(small(), unique, true, false, true, 1);
  SAME(small(), unique_consecutive), SAME(small(), unique_consecutive, true, true);
  SAME(small().flatten(), bincount), SAME(small().flatten(), bincount, unit().flatten(), 6);
  SAME(x(), msort), SAME(x(), bucketize, tensor<double>({-1.0, 0.05, 2.0}, {3}));
  SAME(x(), bucketize, tensor<double>({-1.0, 0.05, 2.0}, {3}), true, true), SAME(x(), histc);
  SAME(x(), histc, 5, -1, 2), SAME(small(), isin, places()), SAME(small(), isin, 3, false, true);
}

BOOST_AUTO_TEST_CASE(of_linear_algebra) {
  SAME(x(), matmul, y()), SAME(x(), mm, y()), SAME(stack_of(), bmm, stack_of());
  SAME(x(), mv, row()), SAME(row(), dot, x()[1]), SAME(row(), outer, x()[1]);
  SAME(row(), vdot, x()[1]), SAME(x(), inner, y()), SAME(x(), addmm, y(), positive());
  SAME(x(), addmm, y(), positive(), 2, 0.5), SAME(row(), addmv, x(), x()[1]);
  SAME(row(), addmv, x(), x()[1], 2, 0.5), SAME(x(), addbmm, stack_of(), stack_of());
  SAME(x(), addbmm, stack_of(), stack_of(), 2, 0.5),
      SAME(stack_of(), baddbmm, stack_of(), stack_of());
  SAME(stack_of(), baddbmm, stack_of(), stack_of(), 2, 0.5), SAME(x(), kron, y());
  SAME(x(), cross, y()), SAME(x(), cross, y(), 0), SAME(x(), matrix_power, 3), SAME(x(), cov);
  SAME(x(), cov, 0), SAME(x(), cov, 0, small()[0], above()[0]), SAME(x(), corrcoef);
  SAME(positive(), cholesky), SAME(positive(), cholesky, true), SAME(x(), det), SAME(x(), slogdet);
  SAME(positive(), logdet), SAME(x(), trace);
  const Tensor tall = cat({x(), y()}, 0);
  require_same("inverse", parts(x().inverse()), parts(f::inv(x())));
  require_same("qr", parts(tall.qr()), parts(f::qr(tall)));
  require_same("qr", parts(tall.qr(false)), parts(f::qr(tall, "complete")));
  SAME(tall, svd), SAME(tall, svd, false);
}

BOOST_AUTO_TEST_CASE(of_indices) {
  SAME(x(), index_select, 1, places()), SAME(x(), gather, 1, grid());
  SAME(x(), scatter, 1, grid(), y()), SAME(x(), scatter, 1, grid(), 9);
  SAME(x(), scatter_add, 1, grid(), y()), SAME(x(), index_add, 0, places(), unit());
  SAME(x(), index_add, 0, places(), unit(), 2.5), SAME(x(), masked_fill, mask(), 9);
  SAME(x(), masked_select, mask()), SAME(x(), take, grid()), SAME(relu(x()), nonzero);
  SAME(x(), take_along_dim, grid()), SAME(x(), take_along_dim, grid(), 0);
  SAME(x(), put, places(), row().narrow(0, 0, 2));
  SAME(x(), put, places(), row().narrow(0, 0, 2), true);
  SAME(x(), scatter_reduce, 1, grid(), y(), "prod");
  SAME(x(), scatter_reduce, 1, grid(), y(), "amax", false);
  SAME(x(), index_copy, 0, places(), unit()), SAME(x(), index_fill, 1, places(), 9);
  SAME(x(), index_fill, 1, places(), full({}, 9, {.dtype = f64}));
  SAME(x(), index_put, Parts{places()}, unit()),
      SAME(x(), index_put, Parts{places()}, unit(), true);
  SAME(x(), masked_scatter, mask(), y()), SAME(relu(x()), argwhere);
}

BOOST_AUTO_TEST_CASE(of_shapes) {
  const Tensor t = arange(24).reshape({2, 3, 4});
  SAME(t, reshape, {4, 6}), SAME(t, view, {4, 6}), SAME(t, flatten), SAME(t, flatten, 1, 2);
  SAME(t, flatten, 0, 1), SAME(t, transpose, 0, 2), SAME(t, permute, {2, 0, 1});
  SAME(t, unsqueeze, 1), SAME(t.unsqueeze(0), squeeze, 0), SAME(t.unsqueeze(0), squeeze);
  SAME(t, expand, {5, 2, 3, 4}), SAME(t, broadcast_to, {5, 2, 3, 4}), SAME(t, narrow, 2, 1, 2);
  SAME(t, slice, 2, 1, 4, 2), SAME(t, select, 1, 2), SAME(t, movedim, {0}, {2});
  SAME(t, swapaxes, 0, 2), SAME(t, unflatten, 2, {2, 2}), SAME(t, view_as, t.view({6, 4}));
  SAME(t, reshape_as, t.view({6, 4})), SAME(t[0][0], expand_as, t), SAME(t, diagonal);
  SAME(t, diagonal, 1, 2, 1), SAME(t, unbind), SAME(t, unbind, 1), SAME(t, split, 2, 2);
  SAME(t, split, Shape{1, 3}, 2), SAME(t, chunk, 2, 2), SAME(t, tensor_split, 3, 2);
  SAME(t, flip, {0, 2}), SAME(t, roll, {1, 2}, {0, 2}), SAME(t, roll, {5}), SAME(t, rot90);
  SAME(t, rot90, 3, {1, 2}), SAME(x(), tril), SAME(x(), tril, 1), SAME(x(), triu);
  SAME(x(), triu, 1), SAME(x(), diag), SAME(x(), diag, 1), SAME(row(), diag_embed);
  SAME(x(), diag_embed, 1, 0, 2), SAME(t, repeat, {2, 1, 3}), SAME(t, tile, {2, 3});
  SAME(t, repeat_interleave, 2), SAME(t, repeat_interleave, 2, 1);
  SAME(t, repeat_interleave, places(), 0), SAME(t, fliplr), SAME(t, flipud);
  require_same("t", parts(x().t()), parts(f::transpose(x(), 0, 1)));
  require_same("type_as", parts(x().type_as(whole())), parts(f::to(x(), i64)));
  require_same("cpu", parts(x().cpu()), parts(x()));
  // x.unfold(2, 2, 1): the windows of two neighbours, beside each other.
  require_same("unfold", parts(t.unfold(2, 2, 1)),
               parts(stack({t.narrow(2, 0, 3), t.narrow(2, 1, 3)}, 3)));
  BOOST_TEST((t.sizes() == t.shape()));
}

BOOST_AUTO_TEST_CASE(of_chance) {
  const auto seeded = [](auto call) {
    manual_seed(7);
    return call();
  };
  require_same("bernoulli", parts(seeded([] { return unit().bernoulli(); })),
               parts(seeded([] { return f::bernoulli(unit()); })));
  require_same("multinomial", parts(seeded([] { return unit().multinomial(2); })),
               parts(seeded([] { return f::multinomial(unit(), 2); })));
  require_same("multinomial", parts(seeded([] { return unit().multinomial(5, true); })),
               parts(seeded([] { return f::multinomial(unit(), 5, true); })));
  Tensor drawn = zeros({1000}, f64);
  BOOST_TEST(drawn.bernoulli_(0.25).is_same(drawn));
  BOOST_TEST(std::abs(drawn.mean().item() - 0.25) < 0.1);
  BOOST_TEST(drawn.random_(3, 5).is_same(drawn));
  BOOST_TEST((drawn.amin().item() == 3 && drawn.amax().item() == 4));
  drawn.random_(2);
  BOOST_TEST((drawn.amin().item() == 0 && drawn.amax().item() == 1));
  tried().insert({"bernoulli_", "random_"});
}

BOOST_AUTO_TEST_CASE(that_change_their_tensor) {
  for (const Tensor& t : {x(), unit().clone()}) {
    CHANGES(t, abs), CHANGES(t, exp), CHANGES(t, log), CHANGES(t, neg), CHANGES(t, sqrt);
    CHANGES(t, relu), CHANGES(t, sigmoid), CHANGES(t, tanh), CHANGES(t, floor), CHANGES(t, ceil);
    CHANGES(t, round), CHANGES(t, trunc), CHANGES(t, sign), CHANGES(t, square);
    CHANGES(t, reciprocal), CHANGES(t, rsqrt), CHANGES(t, sin), CHANGES(t, cos), CHANGES(t, erf);
    CHANGES(t, expm1), CHANGES(t, log1p);
  }
  CHANGES(x(), tril), CHANGES(x(), tril, 1), CHANGES(x(), triu), CHANGES(x(), triu, 1);
  CHANGES(mask(), logical_not), CHANGES(whole(), bitwise_not),
      CHANGES(whole(), bitwise_and, small());
  CHANGES(whole(), bitwise_or, small()), CHANGES(whole(), bitwise_xor, small());
  CHANGES(x(), remainder, y()), CHANGES(x(), remainder, -0.7), CHANGES(x(), fmod, y());
  CHANGES(x(), fmod, -0.7), CHANGES(with_nan(), nan_to_num);
  CHANGES(with_nan(), nan_to_num, 3.0, 7.0, -9.0), CHANGES(unit(), pow, 1.5);
  CHANGES(unit(), pow, above()), CHANGES(x(), clamp, -0.5), CHANGES(x(), clamp, -0.5, 1.0);
  CHANGES(x(), lerp, y(), 0.3), CHANGES(x(), lerp, y(), row()), CHANGES(x(), addcmul, y(), row());
  CHANGES(x(), addcmul, y(), row(), 2.5), CHANGES(x(), addcdiv, y(), row());
  CHANGES(x(), addcdiv, y(), row(), 2.5), CHANGES(x(), masked_fill, mask(), 9);
  CHANGES(x(), masked_fill, mask(), full({}, 9, {.dtype = f64}));
  CHANGES(x(), masked_scatter, mask(), y()), CHANGES(x(), index_add, 0, places(), unit());
  CHANGES(x(), index_add, 0, places(), unit(), 2.5), CHANGES(x(), index_fill, 1, places(), 9);
  CHANGES(x(), index_put, Parts{places()}, unit());
  CHANGES(x(), index_put, Parts{places()}, unit(), true);
  CHANGES(x(), index_copy, 0, places(), unit()), CHANGES(x(), scatter, 1, grid(), y());
  CHANGES(x(), scatter, 1, grid(), 9), CHANGES(x(), scatter_add, 1, grid(), y());
  Tensor t = x().clone();
  require_same("clamp_min_", parts(t.clamp_min_(0.1)), parts(f::clamp(x(), 0.1)));
  t = x().clone();
  require_same("clamp_max_", parts(t.clamp_max_(0.1)), parts(f::clamp(x(), std::nullopt, 0.1)));
  t = x().clone();
  require_same("fill_diagonal_", parts(t.fill_diagonal_(4)),
               parts(where(eye(3, {.dtype = boolean}), 4, x())));
}

// Runs last: nothing that tensor_methods.h declares is left out above, nor what tensor.h declares
// as the functions of core/ops.
BOOST_AUTO_TEST_CASE(every_method_is_tried) {
  std::set<std::string> left_out;
  size_t count = 0;
  for (const char* header : {"tensor_methods.h", "tensor.h"}) {
    std::ifstream file(test::reference_dir() + "/../../core/" + header);
    std::stringstream text;
    text << file.rdbuf();
    std::string all = text.str();
    if (header == std::string("tensor.h")) {
      const size_t begin = all.find("  // ---- copies, views and shapes");
      all = all.substr(begin, all.find("  // ---- mutators:", begin) - begin);
    }
    static const std::regex method(
        R"rx(\n  (?:Tensor&?|ValuesIndices|Unique|QR|SVD|SlogDet|bool|std::\w+<Tensor(?:, Tensor)?>) (\w+)\()rx");
    for (std::sregex_iterator at(all.begin(), all.end(), method), end; at != end; ++at, ++count)
      if (!tried().count((*at)[1])) left_out.insert((*at)[1]);
  }
  // `cuda` needs one; the others have tests of their own.
  for (const char* elsewhere : {"cuda", "self", "to", "contiguous", "clone"})
    left_out.erase(elsewhere);
  BOOST_TEST(count > 300u);
  for (const std::string& name : left_out) BOOST_TEST(false, name << " is not tried");
}

BOOST_AUTO_TEST_SUITE_END()
