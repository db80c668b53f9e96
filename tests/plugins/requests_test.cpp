// What plugins read from requests (plugins/sdk/requests): geometry, and the refusal of what no
// plugin can take. The host never asks such things; another host might.
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/plugins/sdk/formulas.h>
#include <tenon/plugins/sdk/requests/conv.h>
#include <tenon/plugins/sdk/requests/indexing.h>
#include <tenon/plugins/sdk/requests/linalg.h>
#include <tenon/plugins/sdk/requests/loss.h>
#include <tenon/plugins/sdk/requests/normalization.h>
#include <tenon/plugins/sdk/requests/optimizer.h>
#include <tenon/plugins/sdk/requests/pointwise.h>
#include <tenon/plugins/sdk/requests/pool.h>
#include <tenon/plugins/sdk/requests/random.h>
#include <tenon/plugins/sdk/requests/reduction.h>
#include <tenon/plugins/sdk/requests/shape.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(requests_test)

using namespace tenon::sdk;
using tenon::test::has;

namespace {

tn_tensor_desc tensor(std::initializer_list<int64_t> shape, tn_dtype dtype = TN_F32) {
  tn_tensor_desc d{sizeof(d), dtype, static_cast<uint32_t>(shape.size()), {}, {}};
  std::copy(shape.begin(), shape.end(), d.shape);
  int64_t stride = 1;
  for (uint32_t k = d.rank; k-- > 0; stride *= d.shape[k]) d.strides[k] = stride;
  return d;
}
// The same tensor read column by column.
tn_tensor_desc transposed(tn_tensor_desc d) {
  std::swap(d.shape[0], d.shape[1]);
  std::swap(d.strides[0], d.strides[1]);
  return d;
}

// A request, put together piece by piece.
class Ask {
 public:
  explicit Ask(const char* op) : op_(op) {}
  Ask& in(const tn_tensor_desc& d) { return inputs_.emplace_back(d), *this; }
  Ask& out(const tn_tensor_desc& d) { return outputs_.emplace_back(d), *this; }
  Ask& no_in() { return inputs_.emplace_back(), *this; }
  Ask& no_out() { return outputs_.emplace_back(), *this; }
  Ask& set(const char* name, int64_t value) { return attr(name, TN_ATTR_INT).i = value, *this; }
  Ask& flag(const char* name, bool value) { return attr(name, TN_ATTR_BOOL).i = value, *this; }
  Ask& number(const char* name, double value) { return attr(name, TN_ATTR_FLOAT).f = value, *this; }
  Ask& text(const char* name, const char* value) {
    return attr(name, TN_ATTR_STRING).s = value, *this;
  }
  Ask& pair(const char* name, int64_t a, int64_t b) {
    attr(name, TN_ATTR_INTS).num_ints = 2;
    attrs_.back().ints = {a, b};
    return *this;
  }

  template <class F>
  auto read(F&& from) const {
    const auto inputs = pointers(inputs_), outputs = pointers(outputs_);
    auto all = attrs_;
    std::vector<const tn_attr*> attrs;
    for (auto& a : all) {
      a.attr.ints = a.ints.data();
      attrs.push_back(&a.attr);
    }
    const tn_op_request raw{sizeof(raw),    op_,     inputs.size(), inputs.data(), outputs.size(),
                            outputs.data(), nullptr, attrs.size(),  attrs.data(),  0};
    return from(Request(raw));
  }
  // `from` refuses the request with the code and this in its text, which names the operator
  // nowhere.
  template <class F>
  void refused(F&& from, const char* part, tn_code code = TN_CODE_INVALID_ARGUMENT) const {
    std::string found = "nothing was thrown";
    tn_code with = TN_CODE_INTERNAL;
    try {
      read(from);
    } catch (const Error& e) {
      found = e.what();
      with = e.code();
    }
    BOOST_TEST(with == code, found);
    BOOST_TEST(has(found, part), found << "\ndoes not hold \"" << part << "\"");
    BOOST_TEST(!has(found, op_), found);
  }

 private:
  using Tensors = std::vector<std::optional<tn_tensor_desc>>;
  struct Attribute {
    tn_attr attr;
    std::array<int64_t, 2> ints{};
  };
  static std::vector<const tn_tensor_desc*> pointers(const Tensors& tensors) {
    std::vector<const tn_tensor_desc*> all;
    for (auto& d : tensors) all.push_back(d ? &*d : nullptr);
    return all;
  }
  tn_attr& attr(const char* name, tn_attr_kind kind) {
    return attrs_.push_back({{sizeof(tn_attr), name, kind, 0, 0, nullptr, 0, nullptr}, {}}),
           attrs_.back().attr;
  }
  const char* op_;
  Tensors inputs_, outputs_;
  std::vector<Attribute> attrs_;
};

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

BOOST_AUTO_TEST_CASE(normalisations) {
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

  Ask rows("layer_norm_backward");
  rows.in(tensor({4, 5, 6})).in(tensor({4, 5, 6})).no_in().in(tensor({4})).in(tensor({4}));
  rows.no_out().no_out().out(tensor({30})).set("normalized_ndim", 2);
  const auto l = rows.read(LayerNormRequest::from);
  BOOST_TEST((l.rows == 4 && l.size == 30 && !l.weight));
  Ask too_many("layer_norm");
  too_many.in(tensor({4})).set("normalized_ndim", 2);
  too_many.refused(LayerNormRequest::from, "normalized_ndim 2 of a tensor of 1 dimensions");

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
  BOOST_TEST((r.reduction == LossReduction::none && r.smoothing == 0.1));
  cross_entropy("mean", tensor({5})).refused(of, "loss must be a scalar");
  cross_entropy("median", tensor({})).refused(of, "found \"median\"");
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
  Ask("matmul")
      .in(tensor({4, 5}))
      .in(tensor({4, 6}))
      .out(tensor({4, 6}))
      .refused(ProductRequest::from, "(4, 5) and (4, 6) to (4, 6)");
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
}

BOOST_AUTO_TEST_CASE(parts_of_outputs) {
  const auto parts = Ask("cat")
                         .in(tensor({2, 1}))
                         .in(tensor({2, 0}))
                         .in(tensor({2, 3}))
                         .out(tensor({2, 4}))
                         .set("dim", 1)
                         .read(cat_parts);
  BOOST_REQUIRE(parts.size() == 2u);
  BOOST_TEST((parts[1].input == 2u && parts[1].byte_offset == 4 && parts[1].to.strides[0] == 4));
  Ask("cat").in(tensor({2, 1})).out(tensor({2, 4})).set("dim", 1).refused(cat_parts, "do not fill");
  Ask slice("slice_backward");
  slice.in(tensor({3})).out(tensor({8})).set("dim", 0).set("start", 1).set("step", 3);
  BOOST_TEST(slice.read(slice_part).to.strides[0] == 3);
  Ask beyond("slice_backward");
  beyond.in(tensor({3})).out(tensor({8})).set("dim", 0).set("start", 1).set("step", 4);
  beyond.refused(slice_part, "does not fit its output");
}

BOOST_AUTO_TEST_CASE(operands_of_pointwise_operators) {
  const auto both =
      Ask("sub").in(tensor({2})).in(tensor({2})).out(tensor({2})).read(BinaryRequest::from);
  BOOST_TEST((both.a && both.b));
  const auto first = Ask("sub")
                         .in(tensor({2}))
                         .no_in()
                         .out(tensor({2}))
                         .flag("reverse", true)
                         .read(BinaryRequest::from);
  BOOST_TEST((first.scalar_first() && !first.scalar_second() && first.dtype == TN_F32));
  Ask("sub")
      .in(tensor({2}))
      .in(tensor({2}, TN_F64))
      .out(tensor({2}))
      .refused(BinaryRequest::from, "one dtype");
}

BOOST_AUTO_TEST_CASE(steps) {
  Ask sgd("sgd_step");
  for (int i = 0; i < 3; ++i) sgd.in(tensor({4})).in(tensor({5}));
  sgd.set("n", 2).flag("maximize", true).flag("nesterov", false);
  const auto r = sgd.read(SgdRequest::from);
  BOOST_TEST((r.n == 2u && r.momentum && !r.nesterov && r.maximize));
  tn_scalar s[5]{};
  s[2].f = 0.25;
  const auto numbers = r.numbers<double>(s);
  BOOST_TEST((numbers.keep == 0.75 && numbers.sign == -1 && !numbers.first));
  Ask uneven("sgd_step");
  uneven.in(tensor({4}))
      .in(tensor({5}))
      .set("n", 1)
      .flag("maximize", false)
      .flag("nesterov", false);
  uneven.refused(SgdRequest::from, "input 1 does not fit its parameter");
  Ask adam("adam_step");
  for (int i = 0; i < 4; ++i) adam.in(tensor({4}));
  adam.set("n", 1).flag("maximize", false).flag("amsgrad", true).flag("decoupled", false);
  adam.refused(AdamRequest::from, "amsgrad");
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
