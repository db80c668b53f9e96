// What plugins read from requests (plugins/sdk/requests): geometry, and the refusal of what no
// plugin can take. The host never asks such things; another host might.
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/plugins/sdk/formulas.h>
#include <tenon/plugins/sdk/requests/convolution.h>
#include <tenon/plugins/sdk/requests/indexing.h>
#include <tenon/plugins/sdk/requests/linalg.h>
#include <tenon/plugins/sdk/requests/loss.h>
#include <tenon/plugins/sdk/requests/normalization.h>
#include <tenon/plugins/sdk/requests/pointwise.h>
#include <tenon/plugins/sdk/requests/pooling.h>
#include <tenon/plugins/sdk/requests/random.h>
#include <tenon/plugins/sdk/requests/reduction.h>

#include "ask.h"

BOOST_AUTO_TEST_SUITE(requests_test)

using namespace tenon::sdk;
using tenon::test::Ask;
using tenon::test::has;
using tenon::test::tensor;
using tenon::test::transposed;

namespace {

Ask convolution(const tn_tensor_desc& y, int64_t groups = 2) {
  return Ask("conv2d")
      .in(tensor({2, 4, 9, 6}))
      .in(tensor({6, 2, 3, 2}))
      .out(y)
      .pair("stride", 2, 1)
      .pair("padding", 1, 0)
      .pair("dilation", 1, 2)
      .set("groups", groups);
}

Ask batch_norm(bool training) {
  Ask ask("batch_norm");
  ask.in(tensor({2, 3, 4})).in(tensor({3})).no_in();
  ask.flag("training", training).number("eps", 0.5);
  return ask;
}

Ask cross_entropy(const char* reduction, const tn_tensor_desc& loss) {
  return Ask("cross_entropy")
      .in(tensor({5, 7}))
      .in(tensor({5}, TN_I64))
      .no_in()
      .out(loss)
      .out(tensor({2, 5}))
      .out(tensor({}))
      .text("reduction", reduction)
      .set("ignore_index", -100)
      .number("label_smoothing", 0.1);
}

}  // namespace

BOOST_AUTO_TEST_CASE(convolutions) {
  const auto r = convolution(tensor({2, 6, 5, 4})).read(ConvRequest::from);
  BOOST_TEST((r.n == 2 && r.c == 4 && r.h == 9 && r.w == 6 && r.o == 6 && r.kh == 3 && r.kw == 2));
  BOOST_TEST((r.groups == 2 && r.cg == 2 && r.og == 3 && r.oh == 5 && r.ow == 4));
  BOOST_TEST((r.sh == 2 && r.sw == 1 && r.ph == 1 && r.pw == 0 && r.dh == 1 && r.dw == 2));
  BOOST_TEST((r.kind == ConvKind::forward && !r.bias));
  convolution(tensor({2, 6, 5, 5})).refused(ConvRequest::from, "do not fit together");
  convolution(tensor({2, 6, 5, 4}), 3).refused(ConvRequest::from, "do not divide into 3 groups");
  convolution(tensor({2, 6, 5, 4}, TN_F64)).refused(ConvRequest::from, "one dtype");
  convolution(tensor({2, 6, 5, 4})).in(tensor({5})).refused(ConvRequest::from, "bias must be (6)");
}

// The core counts by the same function, so that both refuse the same shapes.
BOOST_AUTO_TEST_CASE(positions_of_windows) {
  BOOST_TEST(tn_window_positions(9, 3, 2, 1, 1, 0) == 5);
  BOOST_TEST(tn_window_positions(8, 3, 2, 1, 1, 0) == 4);
  BOOST_TEST(tn_window_positions(8, 3, 2, 1, 1, 1) == 5);
  BOOST_TEST(tn_window_positions(6, 2, 1, 0, 2, 0) == 4);
  BOOST_TEST(tn_window_positions(2, 3, 1, 0, 1, 0) == 0);  // the window is larger
  BOOST_TEST(tn_window_positions(2, 3, 2, 0, 1, 1) == 1);  // and begins inside all the same
  // The last window would start in the padding, or behind an input that is empty.
  BOOST_TEST(tn_window_positions(3, 2, 3, 1, 1, 1) == 2);
  BOOST_TEST(tn_window_positions(0, 2, 3, 0, 1, 1) == 0);
  // Nothing overflows where a dimension of the kernel is one of an expanded tensor.
  BOOST_TEST(tn_window_positions(9, int64_t{1} << 62, 1, 0, 2147483647, 0) == 0);
  auto wide = tensor({6, 2, int64_t{1} << 31, 2});
  Ask("conv2d")
      .in(tensor({2, 4, 9, 6}))
      .in(wide)
      .out(tensor({2, 6, 5, 4}))
      .pair("stride", 2, 1)
      .pair("padding", 1, 0)
      .pair("dilation", 1, 2)
      .set("groups", 2)
      .refused(ConvRequest::from, "a kernel has 1 to 2^31 - 1 rows and columns");
}

BOOST_AUTO_TEST_CASE(planes_without_elements_have_no_average) {
  const auto adaptive = [](const tn_tensor_desc& x, const tn_tensor_desc& y) {
    return Ask("adaptive_avg_pool2d").in(x).out(y);
  };
  const auto of = [](const Request& request) {
    return PoolRequest::from(request, request.input(0), request.output(0), PoolWindows::none);
  };
  BOOST_TEST(adaptive(tensor({2, 3, 5, 4}), tensor({2, 3, 2, 2})).read(of).planes == 6);
  adaptive(tensor({2, 3, 0, 4}), tensor({2, 3, 2, 2})).refused(of, "no elements to average");
  BOOST_TEST(adaptive(tensor({0, 3, 0, 4}), tensor({0, 3, 2, 2})).read(of).planes == 0);
}

BOOST_AUTO_TEST_CASE(normalizations) {
  const auto of = BatchNormRequest::from;
  Ask good = batch_norm(true);
  good.out(tensor({2, 3, 4})).no_out().no_out().no_out().no_out();
  const auto r = good.read(of);
  BOOST_TEST((r.n == 2 && r.c == 3 && r.size == 4 && r.training && r.weight && !r.bias));
  BOOST_TEST(r.eps == 0.5);
  batch_norm(true).out(tensor({2, 3, 4})).refused(of, "needs 5 outputs");
  batch_norm(true).out(tensor({2, 4, 4})).refused(of, "y needs 24 elements of f32, found 32");
  batch_norm(false).out(tensor({2, 3, 4})).refused(of, "without training");
  Ask strided = batch_norm(true);
  strided.out(transposed(tensor({3, 2, 4})));
  strided.refused(of, "not contiguous", TN_CODE_UNSUPPORTED);
  // Running statistics are updated in place, or not at all.
  Ask apart = batch_norm(true);
  apart.in(tensor({3})).in(tensor({3}));
  apart.out(tensor({2, 3, 4})).no_out().no_out().out(tensor({3})).out(tensor({3}));
  apart.refused(of, "updated in place");
  // Beside a half type, weights and statistics are of its type or all f32, and so are gradients.
  const auto beside_half = [](tn_dtype weight, tn_dtype bias) {
    Ask ask("batch_norm");
    ask.in(tensor({2, 3, 4}, TN_BF16)).in(tensor({3}, weight)).in(tensor({3}, bias));
    ask.out(tensor({2, 3, 4}, TN_BF16)).no_out().no_out().no_out().no_out();
    return ask.flag("training", true).number("eps", 0.5);
  };
  BOOST_TEST(beside_half(TN_F32, TN_F32).read(of).parameters == TN_F32);
  BOOST_TEST(beside_half(TN_BF16, TN_BF16).read(of).parameters == TN_BF16);
  beside_half(TN_F32, TN_BF16).refused(of, "bias needs 3 elements of f32");
  beside_half(TN_F16, TN_F16).refused(of, "weight needs 3 elements of bf16");

  Ask rows("layer_norm_backward");
  rows.in(tensor({4, 5, 6})).in(tensor({4, 5, 6})).no_in().in(tensor({4})).in(tensor({4}));
  rows.no_out().no_out().out(tensor({30})).set("normalized_ndim", 2);
  const auto l = rows.read(LayerNormRequest::from);
  BOOST_TEST((l.rows == 4 && l.size == 30 && !l.weight));
  Ask too_many("layer_norm");
  too_many.in(tensor({4})).set("normalized_ndim", 2);
  too_many.refused(LayerNormRequest::from, "normalized_ndim 2 of a tensor of 1 dimensions");

  Ask scaled("rms_norm");
  scaled.in(tensor({4, 6}, TN_BF16)).in(tensor({6})).out(tensor({4, 6}, TN_BF16)).no_out();
  const auto m = scaled.set("normalized_ndim", 1).number("eps", 0.5).read(LayerNormRequest::from);
  BOOST_TEST((m.rows == 4 && m.size == 6 && m.weight && !m.bias && !m.centered && m.eps == 0.5));
  BOOST_TEST(m.parameters == TN_F32);
  const auto groups = [](int64_t count, const tn_tensor_desc& mean) {
    Ask ask("group_norm");
    ask.in(tensor({2, 6, 5})).no_in().in(tensor({6})).out(tensor({2, 6, 5})).out(mean).no_out();
    return ask.set("num_groups", count).number("eps", 0.5);
  };
  const auto q = groups(3, tensor({2, 3})).read(GroupNormRequest::from);
  BOOST_TEST((q.rows() == 6 && q.channels() == 2 && q.row_size() == 10 && !q.weight && q.bias));
  groups(4, tensor({2, 4})).refused(GroupNormRequest::from, "4 groups of 6 channels");
  groups(0, tensor({2, 3})).refused(GroupNormRequest::from, "0 groups of 6 channels");
  groups(2, tensor({2, 3})).refused(GroupNormRequest::from, "mean needs 4 elements of f32");

  const auto s = Ask("log_softmax_backward")
                     .in(tensor({2, 3, 4}))
                     .in(tensor({2, 3, 4}))
                     .out(tensor({2, 3, 4}))
                     .set("dim", 1)
                     .read(SoftmaxRequest::from);
  BOOST_TEST((s.outer == 2 && s.size == 3 && s.inner == 4 && s.logarithm && s.backward));
  Ask("softmax")
      .in(tensor({2, 3}))
      .out(tensor({2, 3}))
      .set("dim", 2)
      .refused(SoftmaxRequest::from, "dim 2 of a tensor of 2 dimensions");
  Ask("softmax")
      .in(tensor({2, 3}))
      .out(tensor({3, 2}))
      .set("dim", 0)
      .refused(SoftmaxRequest::from, "one shape and dtype");
}

BOOST_AUTO_TEST_CASE(losses) {
  const auto of = CrossEntropyRequest::from;
  const auto r = cross_entropy("none", tensor({5})).read(of);
  BOOST_TEST((r.n == 5 && r.c == 7 && r.ignore == -100 && !r.weighted));
  BOOST_TEST((r.reduction == Reduction::none && r.smoothing == 0.1));
  cross_entropy("mean", tensor({5})).refused(of, "loss must be a scalar");
  cross_entropy("median", tensor({})).refused(of, "found \"median\"");

  const auto distance = [](const char* op, const tn_tensor_desc& loss) {
    return Ask(op).in(tensor({2, 3})).in(tensor({2, 3})).out(loss).text("reduction", "mean");
  };
  const auto squares = distance("mse_loss", tensor({})).read(DistanceRequest::from);
  BOOST_TEST((squares.kind == Distance::squared && squares.n == 6 && squares.divisor == 6));
  const auto huber = distance("huber_loss", tensor({})).scalars(1).read(DistanceRequest::from);
  BOOST_TEST((huber.kind == Distance::huber && huber.has_limit() && !huber.backward));
  distance("smooth_l1_loss", tensor({})).refused(DistanceRequest::from, "needs 1 scalars, found 0");
  distance("l1_loss", tensor({3})).refused(DistanceRequest::from, "are one number");
  distance("l1_loss", tensor({2, 3})).refused(DistanceRequest::from, "are one number");
  const auto losses = [](const tn_tensor_desc& out) {
    return Ask("l1_loss").in(tensor({2, 3})).in(tensor({2, 3})).out(out).text("reduction", "none");
  };
  BOOST_TEST(losses(tensor({2, 3})).read(DistanceRequest::from).each);
  losses(tensor({})).refused(DistanceRequest::from, "losses have the shape of x");
  const auto backward = [](const tn_tensor_desc& g) {
    return Ask("mse_loss_backward")
        .in(g)
        .in(tensor({2, 3}))
        .in(tensor({2, 3}))
        .out(tensor({2, 3}))
        .scalars(1);
  };
  BOOST_TEST(!backward(tensor({})).read(DistanceRequest::from).each);
  backward(tensor({2, 3})).refused(DistanceRequest::from, "are one number");
}

BOOST_AUTO_TEST_CASE(dropout_has_its_mask) {
  const auto of = DropoutRequest::from;
  const auto forward = [](const tn_tensor_desc& mask) {
    return Ask("dropout").in(tensor({4})).out(tensor({4})).out(mask).scalars(3);
  };
  BOOST_TEST(forward(tensor({4}, TN_BOOL)).read(of).n == 4);
  forward(tensor({3}, TN_BOOL)).refused(of, "the mask needs 4 elements of bool, found 3");
  forward(tensor({4}, TN_U8)).refused(of, "the mask needs 4 elements of bool");
  Ask("dropout").in(tensor({4})).out(tensor({4})).no_out().scalars(3).refused(of, "is missing");
  const auto backward = [](const tn_tensor_desc& mask) {
    return Ask("dropout_backward").in(tensor({4})).in(mask).out(tensor({4})).scalars(1);
  };
  BOOST_TEST(backward(tensor({4}, TN_BOOL)).read(of).n == 4);
  backward(tensor({1}, TN_BOOL)).refused(of, "the mask needs 4 elements of bool, found 1");
}

BOOST_AUTO_TEST_CASE(indexing) {
  const auto r = Ask("embedding_backward")
                     .in(tensor({2, 3, 4}))
                     .in(tensor({2, 3}, TN_I32))
                     .out(tensor({9, 4}))
                     .set("padding_idx", 5)
                     .read(RowsRequest::from);
  BOOST_TEST((r.outer == 1 && r.size == 9 && r.inner == 4 && r.count == 6 && r.skip == 5));
  BOOST_TEST((r.dtype == TN_F32 && r.index == TN_I32));
  const auto g = Ask("gather")
                     .in(transposed(tensor({3, 8})))
                     .in(tensor({8, 2}, TN_I64))
                     .out(tensor({8, 2}))
                     .set("dim", 1)
                     .read(GatherRequest::from);
  BOOST_TEST((g.dim == 1u && g.size == 3 && g.stride == 8));
  BOOST_TEST((g.seen.shape[1] == 2 && g.seen.strides[0] == 1 && g.seen.strides[1] == 0));
  Ask("gather")
      .in(tensor({3}))
      .in(tensor({8, 2}, TN_I64))
      .out(tensor({8, 2}))
      .set("dim", 1)
      .refused(GatherRequest::from, "as many dimensions");
}

BOOST_AUTO_TEST_CASE(products) {
  const auto r = Ask("matmul")
                     .in(tensor({3, 4, 5}))
                     .in(tensor({3, 5, 6}))
                     .out(tensor({3, 4, 6}))
                     .read(ProductRequest::from);
  BOOST_TEST((r.m == 4 && r.n == 6 && r.k == 5 && r.batch == 3 && !r.bias));
  BOOST_TEST((r.a_row == 5 && r.a_col == 1 && r.b_row == 6 && r.b_col == 1));
  const auto l = Ask("linear")
                     .in(tensor({4, 5}))
                     .in(tensor({6, 5}))
                     .in(tensor({6}))
                     .out(tensor({4, 6}))
                     .read(ProductRequest::from);
  BOOST_TEST((l.m == 4 && l.n == 6 && l.k == 5 && l.batch == 1 && l.bias));
  BOOST_TEST((l.b_row == 1 && l.b_col == 5));
  // A batch of two dimensions, along one of which the second operand is repeated.
  auto b = tensor({2, 3, 5, 6});
  b.strides[0] = 0;
  const auto many = Ask("matmul")
                        .in(tensor({2, 3, 4, 5}))
                        .in(b)
                        .out(tensor({2, 3, 4, 6}))
                        .read(ProductRequest::from);
  BOOST_TEST((many.batch == 6 && many.batch_rank == 2 && many.batch_shape[1] == 3));
  BOOST_TEST((many.a_batch[0] == 60 && many.b_batch[0] == 0 && many.b_batch[1] == 30));
  const auto at = many.offsets(4);
  BOOST_TEST((at.a == 80 && at.b == 30 && at.y == 96));
  Ask("matmul")
      .in(tensor({4, 5}))
      .in(tensor({4, 6}))
      .out(tensor({4, 6}))
      .refused(ProductRequest::from, "(4, 5) and (4, 6) to (4, 6)");
}

BOOST_AUTO_TEST_CASE(precision_is_a_permission_for_f32) {
  const auto asked = [](const char* word, tn_dtype dtype) {
    Ask ask("matmul");
    ask.in(tensor({4, 5}, dtype)).in(tensor({5, 6}, dtype)).out(tensor({4, 6}, dtype));
    if (word) ask.text("precision", word);
    return ask;
  };
  BOOST_TEST(!asked(nullptr, TN_F32).read(ProductRequest::from).tf32);
  BOOST_TEST(asked("high", TN_F32).read(ProductRequest::from).tf32);
  BOOST_TEST(!asked("high", TN_F64).read(ProductRequest::from).tf32);
  asked("low", TN_F32)
      .refused(ProductRequest::from, "precision \"low\" is not known", TN_CODE_UNSUPPORTED);
  BOOST_TEST(
      convolution(tensor({2, 6, 5, 4})).text("precision", "high").read(ConvRequest::from).tf32);
}

BOOST_AUTO_TEST_CASE(polygammas) {
  const auto of = PolygammaRequest::from;
  const auto polygamma = [](int64_t n, const tn_tensor_desc& y) {
    return Ask("polygamma").in(tensor({3})).out(y).set("n", n);
  };
  BOOST_TEST(polygamma(3, tensor({3})).read(of).n == 3);
  polygamma(0, tensor({3})).refused(of, "n is 1 to 1000, found 0");
  polygamma(int64_t{1} << 32, tensor({3})).refused(of, "found 4294967296");
  polygamma(3, tensor({4})).refused(of, "found (3) and (4)");
}

BOOST_AUTO_TEST_CASE(reductions) {
  const auto s = ReduceShape::of(tensor({2, 3, 1, 4, 5}), {1, 3, 4});
  BOOST_TEST((s.outputs == 2 && s.count == 60 && s.kept_rank == 1 && s.reduced_rank == 1));
  BOOST_TEST((s.kept[0].x_stride == 60 && s.kept[0].y_stride == 1 && s.reduced[0].size == 60));
  const auto r = Ask("argmax")
                     .in(tensor({2, 3, 4}))
                     .out(tensor({2, 4}, TN_I64))
                     .set("dim", 1)
                     .read(ArgReduceRequest::from);
  BOOST_TEST((r.outer == 2 && r.size == 3 && r.inner == 4 && r.dim == 1u));
  Ask("argmax")
      .in(tensor({2, 0}))
      .out(tensor({2}, TN_I64))
      .set("dim", 1)
      .refused(ArgReduceRequest::from, "no elements to choose from");
  Ask("argmax")
      .in(tensor({2, 3}))
      .out(tensor({3}, TN_I64))
      .set("dim", 1)
      .refused(ArgReduceRequest::from, "(3) does not come of reducing (2, 3)");
  auto sum = [](const tn_tensor_desc& y, std::vector<int64_t> dims) {
    return Ask("sum").in(tensor({2, 3, 4})).out(y).ints("dims", std::move(dims));
  };
  BOOST_TEST(sum(tensor({3}), {0, 2}).read(reduced_dims).size() == 2u);
  BOOST_TEST(sum(tensor({2, 3, 4}), {}).read(reduced_dims).empty());
  sum(tensor({2}), {0, 2}).refused(reduced_dims, "(2) does not come of reducing (2, 3, 4)");
  sum(tensor({3, 4}), {0, 2}).refused(reduced_dims, "does not come of reducing");
  sum(tensor({}), {0, 2}).refused(reduced_dims, "does not come of reducing");
  sum(tensor({3}), {2, 0}).refused(reduced_dims, "in rising order; found 0");
  sum(tensor({3}), {0, 0, 2}).refused(reduced_dims, "in rising order");
  sum(tensor({2, 3}), {3}).refused(reduced_dims, "found 3 of 3 dimensions");
  sum(tensor({2, 3}), {-1}).refused(reduced_dims, "found -1 of 3 dimensions");
  BOOST_TEST(Ask("var").set("correction", 2).read(variance_correction) == 2);
  Ask("var").refused(variance_correction, "\"correction\" is missing");
  BOOST_TEST((variance_divisor(5, 2) == 3 && variance_divisor(1, 2) == 0));
  BOOST_TEST(variance_divisor(0, -1) == 0);
}

BOOST_AUTO_TEST_CASE(dtypes_have_kernels_or_are_refused) {
  const auto names =
      for_numbers<float, float>([]<class T>(Type<T>) { return +[] { return sizeof(T); }; });
  BOOST_TEST(names.pick(TN_F64)() == 8u);
  BOOST_TEST(names.pick(TN_BF16)() == 4u);
  BOOST_CHECK_EXCEPTION(names.pick(TN_BOOL), Error,
                        [](const Error& e) { return has(e.what(), "does not take bool"); });
  BOOST_TEST(with_number(byte_for_bool(TN_BOOL), []<class T>(T) { return sizeof(T); }) == 1u);
}

BOOST_AUTO_TEST_CASE(limits_beyond_an_integer_dtype_are_none) {
  tn_scalar s[2]{};
  s[0].i = -5;
  s[1].i = 1000;
  const auto clamp = formulas::Clamp<uint8_t>::from(s);
  BOOST_TEST(int{clamp(0)} == 0);
  BOOST_TEST(int{clamp(255)} == 255);
  BOOST_TEST(formulas::Add()(INT32_MAX, 1) == INT32_MIN);
  BOOST_TEST(int{formulas::Neg()(uint8_t{1})} == 255);
}

BOOST_AUTO_TEST_SUITE_END()
