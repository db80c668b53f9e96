// What plugins check of a request beyond its geometry: that outputs fit their inputs, that scalars
// are there, and that the operator is one that its kernel knows.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/plugins/sdk/requests/activation.h>
#include <tenon/plugins/sdk/requests/convolution.h>
#include <tenon/plugins/sdk/requests/indexing.h>
#include <tenon/plugins/sdk/requests/linalg.h>
#include <tenon/plugins/sdk/requests/loss.h>
#include <tenon/plugins/sdk/requests/normalization.h>
#include <tenon/plugins/sdk/requests/optimizer.h>
#include <tenon/plugins/sdk/requests/pointwise.h>
#include <tenon/plugins/sdk/requests/resample.h>
#include <tenon/plugins/sdk/requests/residual.h>
#include <tenon/plugins/sdk/requests/shape.h>

#include "ask.h"

BOOST_AUTO_TEST_SUITE(requests_outputs_test)

using namespace tenon::sdk;
using tenon::test::Ask;
using tenon::test::tensor;

BOOST_AUTO_TEST_CASE(what_is_taken_by_indices_has_their_shape) {
  auto rows = [](const tn_tensor_desc& y) {
    return Ask("index_select").in(tensor({5, 4})).in(tensor({3}, TN_I64)).out(y).set("dim", 1);
  };
  BOOST_TEST(rows(tensor({5, 3})).read(RowsRequest::from).count == 3);
  rows(tensor({5, 4})).refused(RowsRequest::from, "3 rows of (5, 4) are not a tensor (5, 4)");
  rows(tensor({5, 3}, TN_F64)).refused(RowsRequest::from, "are not a tensor");
  auto gather = [](const tn_tensor_desc& index, const tn_tensor_desc& y) {
    return Ask("gather").in(tensor({4, 3})).in(index).out(y).set("dim", 1);
  };
  gather(tensor({4, 2}, TN_I64), tensor({4, 3}))
      .refused(GatherRequest::from, "taken by an index (4, 2) has its shape");
  gather(tensor({4, 2}, TN_I64), tensor({4, 2}, TN_I64))
      .refused(GatherRequest::from, "the dtype of what it indexes");
  gather(tensor({5, 2}, TN_I64), tensor({5, 2}))
      .refused(GatherRequest::from, "an index (5, 2) reaches beyond (4, 3) along dim 0");
}

BOOST_AUTO_TEST_CASE(operators_of_another_family_are_refused) {
  auto refused = [](auto from, const char* known) {
    Ask("conv3d").refused(from, known, TN_CODE_UNSUPPORTED);
  };
  refused(ConvRequest::from, "reads requests of conv2d, conv2d_backward_input, ");
  refused(ProductRequest::from, "matmul, linear, linear_relu");
  refused(RowsRequest::from, "embedding, ");
  refused(GatherRequest::from, "gather, gather_backward");
  refused(CrossEntropyRequest::from, "cross_entropy");
  refused(BatchNormRequest::from, "batch_norm");
  refused(LayerNormRequest::from, "layer_norm");
  refused(GroupNormRequest::from, "group_norm");
  refused(SoftmaxRequest::from, "softmax");
  refused(ResampleRequest::from, "resample");
}

BOOST_AUTO_TEST_CASE(activations_are_named_and_have_their_scalars) {
  const auto linear = [] {
    return Ask("linear").in(tensor({2, 3})).in(tensor({4, 3})).out(tensor({2, 4}));
  };
  BOOST_TEST(!linear().read(ActivationRequest::from));
  BOOST_TEST(linear().text("activation", "relu").read(ActivationRequest::from).op == "relu");
  const auto leaky = linear().text("activation", "leaky_relu").scalars(1);
  BOOST_TEST(leaky.read(ActivationRequest::from).scalars == 1);
  linear()
      .text("activation", "leaky_relu")
      .refused(ActivationRequest::from, "needs 1 scalars, found 0");
  linear().set("activation", 1).refused(ActivationRequest::from, "of another kind");
  linear()
      .text("activation", "reluu")
      .refused(ActivationRequest::from, "activation \"reluu\" is not known to this plugin",
               TN_CODE_UNSUPPORTED);
}

BOOST_AUTO_TEST_CASE(activations_come_after_the_scalars_of_the_operator) {
  const auto ask = Ask("batch_norm").text("activation", "leaky_relu");
  const auto after_one = [](const Request& r) { return ActivationRequest::after(r, 1); };
  Ask(ask).scalars(1).refused(after_one, "needs 2 scalars, found 1");
  BOOST_TEST(Ask(ask).scalars(2).read(after_one).op == "leaky_relu");
}

BOOST_AUTO_TEST_CASE(residuals_lie_as_the_result_does) {
  const auto from = [](const Request& request) { return ResidualRequest::from(request, 3); };
  const auto linear = [] {
    return Ask("linear").in(tensor({2, 3})).in(tensor({4, 3})).no_in().out(tensor({2, 4}));
  };
  BOOST_TEST(!linear().read(from));
  BOOST_TEST(!linear().flag("residual", false).read(from));
  const auto asked = linear().in(tensor({2, 4})).flag("residual", true).read(from);
  BOOST_TEST((asked && asked.input == 3));
  linear().flag("residual", true).refused(from, "input 3");
  linear().set("residual", 1).refused(from, "of another kind");
  for (auto& other : {tensor({2, 5}), tensor({4}), tensor({2, 4}, TN_F64)})
    linear()
        .in(other)
        .flag("residual", true)
        .refused(from, "has the shape and dtype of the result");
  linear()
      .in(tenon::test::transposed(tensor({4, 2})))
      .flag("residual", true)
      .refused(from, "does not lie as the result does", TN_CODE_UNSUPPORTED);
}

// A kernel that does not compute activations does not read the attribute, and refuses it.
BOOST_AUTO_TEST_CASE(an_activation_that_nobody_computes_stays_unread) {
  const Ask ask = Ask("linear")
                      .in(tensor({2, 3}))
                      .in(tensor({4, 3}))
                      .out(tensor({2, 4}))
                      .text("activation", "relu");
  const auto unread = [](const Request& request) {
    ProductRequest::from(request);
    return std::string(request.unread() ? request.unread() : "");
  };
  BOOST_TEST(ask.read(unread) == "activation");
}

BOOST_AUTO_TEST_CASE(what_is_resampled_has_the_size_of_the_places) {
  const auto resample = [](const tn_tensor_desc& y, const tn_tensor_desc& weight) {
    Ask ask("resample");
    ask.in(tensor({2, 3, 4})).in(tensor({2, 5}, TN_I64)).in(weight).out(y);
    return ask.set("dim", 1);
  };
  const auto r = resample(tensor({2, 5, 4}), tensor({2, 5})).read(ResampleRequest::from);
  BOOST_TEST((r.outer == 2 && r.size == 3 && r.inner == 4 && r.count == 5 && r.taps == 2));
  resample(tensor({2, 6, 4}), tensor({2, 5})).refused(ResampleRequest::from, "do not make");
  resample(tensor({2, 5, 3}), tensor({2, 5})).refused(ResampleRequest::from, "do not make");
  resample(tensor({2, 5, 4}), tensor({5})).refused(ResampleRequest::from, "weight needs 10");
  resample(tensor({2, 5, 4}), tensor({2, 5}, TN_F64)).refused(ResampleRequest::from, "of f32");
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
  Ask("cat")
      .in(tensor({3, 4}))
      .out(tensor({2, 4}))
      .set("dim", 1)
      .refused(cat_parts, "(3, 4) and the output (2, 4) differ");
  Ask slice("slice_backward");
  slice.in(tensor({3})).out(tensor({8})).set("dim", 0).set("start", 1).set("step", 3);
  BOOST_TEST(slice.read(slice_part).to.strides[0] == 3);
  Ask beyond("slice_backward");
  beyond.in(tensor({3})).out(tensor({8})).set("dim", 0).set("start", 1).set("step", 4);
  beyond.refused(slice_part, "does not fit its output");
  Ask far("slice_backward");  // so far that the last row's place is no number
  far.in(tensor({3})).out(tensor({8})).set("dim", 0).set("start", 0).set("step", INT64_MAX / 2 + 1);
  far.refused(slice_part, "does not fit its output");
  auto wider = [](const tn_tensor_desc& g) {
    Ask ask("slice_backward");
    ask.in(g).out(tensor({8, 2})).set("dim", 0).set("start", 1).set("step", 1);
    return ask;
  };
  wider(tensor({3, 5})).refused(slice_part, "(3, 5) and its output (8, 2) differ beyond dim 0");
  wider(tensor({3})).refused(slice_part, "differ beyond dim 0");
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
                         .scalars(1)
                         .read(BinaryRequest::from);
  BOOST_TEST((first.scalar_first() && !first.scalar_second() && first.dtype == TN_F32));
  Ask("sub")
      .in(tensor({2}))
      .in(tensor({2}, TN_F64))
      .out(tensor({2}))
      .refused(BinaryRequest::from, "one dtype");
  Ask("sub")
      .in(tensor({2}))
      .in(tensor({3}))
      .out(tensor({2}))
      .refused(BinaryRequest::from, "operands have the result's shape; found (3) and (2)");
  Ask("sub").in(tensor({2})).out(tensor({2})).refused(BinaryRequest::from, "needs 1 scalars");
}

BOOST_AUTO_TEST_CASE(steps) {
  auto sgd_step = [] {
    Ask sgd("sgd_step");
    for (int i = 0; i < 3; ++i) sgd.in(tensor({4})).in(tensor({5}));
    return sgd.set("n", 2).flag("maximize", true).flag("nesterov", false).scalars(5);
  };
  const auto r = sgd_step().out_at(0).out_at(1).out_at(4).out_at(5).read(SgdRequest::from);
  BOOST_TEST((r.n == 2u && r.momentum && !r.nesterov && r.maximize));
  tn_scalar s[5]{};
  s[2].f = 0.25;
  const auto numbers = r.numbers<double>(s);
  BOOST_TEST((numbers.keep == 0.75 && numbers.sign == -1 && !numbers.first));
  sgd_step().out_at(0).out_at(1).refused(SgdRequest::from, "6 inputs have 4 outputs, found 2");
  sgd_step().out_at(0).out_at(1).out_at(2).out_at(5).refused(SgdRequest::from,
                                                             "output 2 is not input 4");
  sgd_step()
      .out(tensor({4}))
      .out_at(1)
      .out_at(4)
      .out_at(5)
      .refused(SgdRequest::from, "output 0 is not input 0, updated in place");
  sgd_step().scalars(4).refused(SgdRequest::from, "needs 5 scalars, found 4");
  Ask uneven("sgd_step");
  uneven.in(tensor({4}))
      .in(tensor({5}))
      .set("n", 1)
      .flag("maximize", false)
      .flag("nesterov", false)
      .scalars(5);
  uneven.refused(SgdRequest::from, "input 1 does not fit its parameter");
  Ask adam("adam_step");
  for (int i = 0; i < 4; ++i) adam.in(tensor({4}));
  for (size_t i : {0, 2, 3}) adam.out_at(i);
  adam.set("n", 1).flag("maximize", false).flag("amsgrad", true).flag("decoupled", false);
  adam.scalars(6);
  adam.refused(AdamRequest::from, "amsgrad");
}

BOOST_AUTO_TEST_CASE(adaptive_steps) {
  auto ask = [](const char* op, size_t lists, size_t scalars) {
    Ask step(op);
    for (size_t i = 0; i < lists; ++i) step.in(tensor({4}));
    for (size_t i = 0; i < lists; ++i)
      if (i != 1) step.out_at(i);
    return step.set("n", 1).flag("maximize", true).scalars(scalars);
  };
  auto rmsprop = [&](size_t lists, bool centered, bool momentum) {
    return ask("rmsprop_step", lists, 5).flag("centered", centered).flag("momentum", momentum);
  };
  tn_scalar s[8]{};
  s[1].f = 0.75;
  const auto r = rmsprop(4, true, false).read(RmspropRequest::from);
  BOOST_TEST((r.centered && !r.momentum && r.numbers<double>(s).grow == 0.25));
  rmsprop(4, true, true)
      .refused(RmspropRequest::from, "there are 5 tensors of each parameter, found 4");
  ask("adagrad_step", 4, 3)
      .refused(AdagradRequest::from, "there are 3 tensors of each parameter, found 4");
  BOOST_TEST(ask("adagrad_step", 3, 3).read(AdagradRequest::from).numbers<double>(s).sign == -1);
  BOOST_TEST(ask("nadam_step", 4, 8).read(NadamRequest::from).numbers<double>(s).grow2 == 0.25);
  s[6].i = 1;
  BOOST_TEST(ask("radam_step", 4, 7).read(RadamRequest::from).numbers<double>(s).adaptive);
  ask("radam_step", 4, 6).refused(RadamRequest::from, "needs 7 scalars, found 6");
  BOOST_TEST(ask("lion_step", 3, 4).read(LionRequest::from).numbers<double>(s).beta1 == 0.75);
}

BOOST_AUTO_TEST_SUITE_END()
