#include <algorithm>
#include <cmath>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/attention.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/random.h>
#include <tenon/core/runtime/dispatch_stats.h>

#include "ops/check.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(attention)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(a_row_that_attends_to_nothing_is_zero_and_has_no_gradient) {
  const Tensor q = rand({2, 3, 4}).requires_grad_(), k = rand({2, 5, 4}).requires_grad_(),
               v = rand({2, 5, 4}).requires_grad_();
  Tensor mask = ones({3, 5}, {.dtype = boolean});
  mask.select(0, 1).fill_(false);
  const Tensor y = scaled_dot_product_attention(q, k, v, {.attn_mask = mask});
  BOOST_TEST(abs(y.select(1, 1)).sum().item<float>() == 0);
  y.sum().backward();
  for (auto& t : {q, k, v}) BOOST_TEST(std::isfinite(abs(t.grad()).sum().item<float>()));
  BOOST_TEST(abs(q.grad().select(1, 1)).sum().item<float>() == 0);
}

// A backend without a kernel computes the products of half types as its matmul does, and the
// backward pass reads the weights that the forward pass kept: two products forward and four
// backward.
BOOST_AUTO_TEST_CASE(without_a_kernel_the_scores_are_computed_once_and_in_the_type_of_the_inputs) {
  manual_seed(9);
  const Tensor start[] = {randn({2, 5, 4}), randn({2, 7, 4}), randn({2, 7, 3})};
  const auto outcome = [&](Device device, DType dtype, bool causal) {
    std::vector<Tensor> in;
    for (auto& t : start) in.push_back(t.to(bf16).to(dtype).to(device).requires_grad_());
    const Tensor y = scaled_dot_product_attention(in[0], in[1], in[2], {.is_causal = causal});
    BOOST_TEST(y.dtype() == dtype);
    y.sum().backward();
    return std::vector{y.detach(), in[0].grad(), in[1].grad(), in[2].grad()};
  };
  for (bool causal : {false, true}) {
    const auto expected = outcome("cpu", f64, causal);
    for (DType dtype : {f32, bf16, f16}) {
      count_dispatch();
      reset_dispatch_stats();
      const auto found = outcome("primitives:0", dtype, causal);
      synchronize();
      const DispatchStats stats = dispatch_stats();
      count_dispatch(false);
      uint64_t products = 0;
      for (auto& r : stats.runs) products += r.op == "matmul" ? r.runs : 0;
      BOOST_TEST(products == 6u);
      for (auto& widened : stats.widened)
        BOOST_TEST(!has(widened.op, "attention"), widened.op << " was computed in f32");
      const double tolerance = dtype == f32 ? 1e-5 : dtype == f16 ? 4e-3 : 4e-2;
      for (size_t i = 0; i < found.size(); ++i)
        require_close(found[i].to(Device()).to(f64).to_vector<double>(),
                      expected[i].to_vector<double>(), tolerance, tolerance);
    }
  }
}

namespace {
// The gradients of query, key and value for the gradient `g`, by the operator and by what it is
// made of.
std::vector<Tensor> gradients_by(bool composed, const std::vector<Tensor>& inputs,
                                 const Tensor& mask, const Tensor& g) {
  std::vector<Tensor> leaves;
  for (auto& t : inputs) leaves.push_back(t.detach().requires_grad_());
  const auto &q = leaves[0], &k = leaves[1], &v = leaves[2];
  const Tensor scores = matmul(q, k.transpose(-1, -2)) * (1 / std::sqrt(double(q.size(-1))));
  const Tensor y = composed ? matmul(softmax(scores + mask, -1), v)
                            : scaled_dot_product_attention(q, k, v, {.attn_mask = mask});
  return grad(std::span(&y, 1), leaves, std::span(&g, 1));
}
}  // namespace

// A mask of -1e9 throughout a row leaves nothing of its scores in f32, but their sum counts.
BOOST_AUTO_TEST_CASE(gradients_under_masks_of_large_numbers) {
  manual_seed(8);
  for (int64_t s : {5, 300}) {  // one block of keys, and several
    const std::vector<Tensor> inputs{randn({2, 3, 4}), randn({2, s, 4}), randn({2, s, 4})};
    Tensor mask = zeros({3, s});
    mask.select(0, 1).fill_(-1e9);
    mask.select(0, 2).narrow(0, 1, s - 1).fill_(-1e9);
    const Tensor g = randn({2, 3, 4});
    const auto found = gradients_by(false, inputs, mask, g),
               expected = gradients_by(true, inputs, mask, g);
    for (size_t i = 0; i < 3; ++i)
      BOOST_TEST(abs(found[i] - expected[i]).max().item() < 1e-5, "input " << i << " of " << s);
  }
}

// Only what a kernel cannot read as it lies is copied: a gradient that arrives as a view, and no
// mask that broadcasts, nor queries that are views.
BOOST_AUTO_TEST_CASE(copies_of_the_gradient) {
  if (default_device().type() != "cpu") return;
  manual_seed(9);
  const std::vector<Tensor> inputs{randn({2, 4, 3, 8}).transpose(1, 2),
                                   randn({2, 5, 3, 8}).transpose(1, 2),
                                   randn({2, 5, 3, 8}).transpose(1, 2)};
  const Tensor mask = randn({4, 5}), g = randn({2, 4, 3, 8}).transpose(1, 2),
               contiguous = g.contiguous();
  count_dispatch();
  const auto copies_for = [&](const Tensor& gradient) {
    synchronize();
    reset_dispatch_stats();
    gradients_by(false, inputs, mask, gradient);
    synchronize();
    const DispatchStats stats = dispatch_stats();
    BOOST_TEST(stats.hidden_copies.empty());
    uint64_t copies = 0;
    for (auto& run : stats.runs)
      if (run.op == "copy") copies += run.runs;
    return copies;
  };
  BOOST_TEST(copies_for(contiguous) == 0u);
  BOOST_TEST(copies_for(g) == 1u);
  count_dispatch(false);
}

BOOST_AUTO_TEST_CASE(dropout_keeps_the_mean) {
  manual_seed(3);
  const Tensor q = zeros({1, 400, 8}), v = ones({1, 50, 1});
  const Tensor y = scaled_dot_product_attention(q, zeros({1, 50, 8}), v, {.dropout_p = 0.5});
  BOOST_TEST(std::abs(y.mean().item<float>() - 1) < 0.05);
  BOOST_TEST(var(y).item<float>() > 0.001);
}

// The scores alone would be 64 MiB, forwards and backwards.
BOOST_AUTO_TEST_CASE(long_sequences_need_no_matrix_of_scores) {
  if (default_device().type() != "cpu") return;
  const int64_t n = kSanitized ? 1024 : 4096, scores = n * n * 4;
  manual_seed(5);
  Tensor q = randn({1, n, 8}), k = randn({1, n, 8}), v = randn({1, n, 8});
  for (Tensor* t : {&q, &k, &v}) t->requires_grad_();
  const Tensor some = q.detach().narrow(1, n - 2, 2),
               whole = matmul(some, k.detach().transpose(1, 2));
  const Tensor expected = matmul(softmax(whole * (1 / std::sqrt(8.0)), -1), v.detach());
  synchronize();
  const MemoryStats before = memory_stats(default_device());
  const Tensor y = scaled_dot_product_attention(q, k, v);
  y.sum().backward();
  synchronize();
  BOOST_TEST(memory_stats(default_device()).peak_allocated <=
             std::max(before.peak_allocated, before.allocated + static_cast<uint64_t>(scores) / 4));
  BOOST_TEST(abs(y.detach().narrow(1, n - 2, 2) - expected).max().item() < 1e-5);
  // The weights of a row add up to 1.
  BOOST_TEST(std::abs(v.grad().sum().item() - static_cast<double>(8 * n)) < 1e-2 * n);
}

BOOST_AUTO_TEST_CASE(without_weights_many_heads_give_the_same) {
  manual_seed(6);
  const int64_t l = 5, s = 7, batch = 2, width = 6, heads = 3;
  const Tensor query = randn({l, batch, width}), key = randn({s, batch, width});
  const MultiheadAttentionWeights w = {.in_proj_weight = randn({3 * width, width}),
                                       .out_proj_weight = randn({width, width})};
  const Tensor causal = triu(ones({l, s}, {.dtype = boolean}), 1),
               late = arange(0, s).gt(4.0).expand({batch, s});
  const Tensor added = randn({batch * heads, l, s});
  for (const Tensor& mask : {Tensor(), causal, added})
    for (const Tensor& padding : {Tensor(), late, randn({batch, s})}) {
      MultiheadAttentionForwardOptions options = {.key_padding_mask = padding, .attn_mask = mask};
      const Tensor with = multi_head_attention_forward(query, key, key, heads, w, options).first;
      options.need_weights = false;
      const Tensor without = multi_head_attention_forward(query, key, key, heads, w, options).first;
      BOOST_TEST(abs(with - without).max().item() < 1e-4);
      // Positions up to the own one, with any of the masks.
      options.is_causal = true;
      const Tensor fused = multi_head_attention_forward(query, key, key, heads, w, options).first;
      options.is_causal = false;
      options.attn_mask = mask.defined() && mask.dim() == 3 ? where(causal, -1e30, mask) : causal;
      const Tensor masked = multi_head_attention_forward(query, key, key, heads, w, options).first;
      BOOST_TEST(abs(fused - masked).max().item() < 1e-4);
    }
}

// One sequence is one without a batch, and a sequence that lies in memory with its batch first is
// one that does not.
BOOST_AUTO_TEST_CASE(floating_masks_of_another_type_are_converted) {
  const Tensor x = sample({3, 2, 4}), w = sample({12, 4}, 0.5), o = sample({4, 4}, 0.5),
               mask = sample({3, 3}).to(bf16).to(f32);  // each type holds its numbers
  const auto attend = [&](DType dtype, const Tensor& added, bool need_weights) {
    return multi_head_attention_forward(
               x.to(dtype), x.to(dtype), x.to(dtype), 2,
               {.in_proj_weight = w.to(dtype), .out_proj_weight = o.to(dtype)},
               {.attn_mask = added, .need_weights = need_weights})
        .first;
  };
  for (bool need_weights : {true, false})
    for (DType dtype : {f32, f64, bf16})
      for (DType of_mask : {f32, f64, bf16})
        require_equal(attend(dtype, mask.to(of_mask), need_weights),
                      attend(dtype, mask.to(dtype), need_weights));
}

BOOST_AUTO_TEST_CASE(sequences_without_a_batch_or_with_it_first) {
  manual_seed(8);
  const MultiheadAttentionWeights w = {.in_proj_weight = randn({12, 4}),
                                       .in_proj_bias = randn({12}),
                                       .out_proj_weight = randn({4, 4})};
  const Tensor query = randn({3, 1, 4}), key = randn({5, 1, 4}), late = arange(0, 5).gt(2.0);
  const auto [y, weights] =
      multi_head_attention_forward(query, key, key, 2, w, {.key_padding_mask = late.unsqueeze(0)});
  const Tensor q = query.squeeze(1), k = key.squeeze(1);
  const auto [one, of_one] =
      multi_head_attention_forward(q, k, k, 2, w, {.key_padding_mask = late});
  BOOST_TEST((one.shape() == Shape{3, 4} && of_one.shape() == Shape{3, 5}));
  BOOST_TEST(abs(one - y.squeeze(1)).max().item() < 1e-6);
  BOOST_TEST(abs(of_one - weights.squeeze(0)).max().item() < 1e-6);
  for (const bool need_weights : {false, true}) {
    Tensor x = randn({2, 3, 4}), copied = x.transpose(0, 1).contiguous();
    x.requires_grad_(true);
    copied.requires_grad_(true);
    const Tensor by_batch = x.transpose(0, 1), g = randn({3, 2, 4});
    const auto attend = [&](const Tensor& s) {
      return multi_head_attention_forward(s, s, s, 2, w, {.need_weights = need_weights}).first;
    };
    const Tensor found = attend(by_batch), expected = attend(copied);
    BOOST_TEST(abs(found - expected).max().item() < 1e-5);
    (found * g).sum().backward();
    (expected * g).sum().backward();
    BOOST_TEST(abs(x.grad().transpose(0, 1) - copied.grad()).max().item() < 1e-5);
  }
}

BOOST_AUTO_TEST_CASE(bad_input) {
  const Tensor q = zeros({2, 3, 4}), k = zeros({2, 5, 4}), v = zeros({2, 5, 6});
  const auto attend = [&](const Tensor& a, const Tensor& b, const Tensor& c,
                          const AttentionOptions& options = {}) {
    return [=] { scaled_dot_product_attention(a, b, c, options); };
  };
  require_error<ValueError>(attend(Tensor(), k, v), "query is an undefined tensor");
  require_error<ShapeError>(attend(zeros({4}), k, v), "have at least two dimensions; found (4,)");
  require_error<ShapeError>(attend(zeros({2, 3, 5}), k, v), "query (2, 3, 5) and key (2, 5, 4)");
  require_error<ShapeError>(attend(q, k, zeros({2, 4, 6})), "number of positions");
  require_error<DTypeError>(attend(q.to(f64), k, v), "one floating dtype; found f64, f32 and f32");
  require_error<DTypeError>(attend(q.to(i64), k.to(i64), v.to(i64)), "one floating dtype");
  require_error<ValueError>(
      attend(q, k, v, {.attn_mask = ones({3, 5}, {.dtype = boolean}), .is_causal = true}),
      "attn_mask and is_causal cannot be combined");
  require_error<DTypeError>(attend(q, k, v, {.attn_mask = ones({3, 5}, {.dtype = i64})}),
                            "attn_mask is bool or has the dtype of the query");
  require_error<ShapeError>(attend(q, k, v, {.attn_mask = ones({4, 5})}), "(2, 3, 5)");
  require_error<ValueError>(attend(q, k, v, {.dropout_p = 1.5}), "dropout_p must lie in [0, 1]");
  require_error<ShapeError>(
      attend(zeros({1, 3, 2, 4}), zeros({1, 2, 2, 4}), zeros({1, 2, 2, 4}), {.enable_gqa = true}),
      "the 3 query heads must be a multiple of the 2 heads of key");

  const Tensor w = zeros({12, 4}), o = zeros({4, 4}), x = zeros({3, 2, 4});
  const auto many = [&](const Tensor& query, const Tensor& key, int64_t heads,
                        const MultiheadAttentionWeights& weights,
                        const MultiheadAttentionForwardOptions& options = {}) {
    return [=] { multi_head_attention_forward(query, key, key, heads, weights, options); };
  };
  const MultiheadAttentionWeights good = {.in_proj_weight = w, .out_proj_weight = o};
  require_error<ShapeError>(many(zeros({3, 4}), x, 1, good), "needs a query (l, batch, width)");
  require_error<ShapeError>(many(zeros({3, 4}), zeros({3, 5}), 1, good), "found (3, 1, 4), (3, 1");
  require_error<ShapeError>(many(x, zeros({3, 1, 4}), 1, good), "found (3, 2, 4), (3, 1, 4)");
  require_error<ValueError>(many(x, x, 3, good), "width 4 cannot be divided into num_heads = 3");
  require_error<ValueError>(many(x, x, 0, good), "cannot be divided into num_heads = 0");
  require_error<ValueError>(many(x, x, 1, {.in_proj_weight = w}),
                            "out_proj_weight is an undefined");
  require_error<ShapeError>(many(x, x, 1, {.in_proj_weight = o, .out_proj_weight = o}),
                            "in_proj_weight has shape (4, 4), but must be (12, 4)");
  require_error<ShapeError>(many(x, x, 1, good, {.key_padding_mask = zeros({3, 2})}),
                            "key_padding_mask has shape (3, 2), but must be (2, 3)");
  require_error<ShapeError>(many(x, x, 2, good, {.attn_mask = zeros({2, 3, 3})}),
                            "attn_mask has shape (2, 3, 3), but must be (3, 3) or (4, 3, 3)");
  require_error<DTypeError>(many(x, x, 2, good, {.attn_mask = zeros({3, 3}, i64)}),
                            "attn_mask is bool, where true is left out, or floating", "found i64");
  require_error<DTypeError>(many(x, x, 2, good, {.key_padding_mask = zeros({2, 3}, u8)}),
                            "key_padding_mask is bool", "found u8");

  require_error<ShapeError>([] { rotary_embedding(zeros({3, 5})); }, "with an even d");
  require_error<ShapeError>([] { rotary_embedding(zeros({4})); }, "needs an input (…, n, d)");
  require_error<DTypeError>([] { rotary_embedding(zeros({3, 4}).to(i64)); }, "needs a floating");
  require_error<ValueError>([] { rotary_embedding(zeros({3, 4}), 0); }, "base must be above 0");
}

BOOST_AUTO_TEST_SUITE_END()
