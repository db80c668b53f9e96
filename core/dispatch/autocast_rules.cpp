// What operators and functions do under an Autocast guard. Every name is that of a line of the
// table of operators (conformance/cases), and tests/ops/autocast_test.cpp looks at each of them.
// The lists are PyTorch's for cuda (ATen/autocast_mode.h) and, beyond them, what is of their kind:
// all that sums up, and all losses.
#include <algorithm>
#include <iterator>

#include <tenon/core/dispatch/autocast.h>

namespace tenon {

namespace {

constexpr auto lower = AutocastRule::lower, wide = AutocastRule::f32, widest = AutocastRule::widest;

constexpr NamedAutocastRule kRules[] = {
    {"acos", wide},
    {"addbmm", lower},
    {"addcdiv", widest},
    {"addcmul", widest},
    {"addmm", lower},
    {"addmv", lower},
    {"asin", wide},
    {"baddbmm", lower},
    {"binary_cross_entropy", wide},
    {"binary_cross_entropy_with_logits", wide},
    {"bmm", lower},
    {"cat", widest},
    {"cdist", wide},
    {"chain_matmul", lower},
    {"conv1d", lower},
    {"conv2d", lower},
    {"conv3d", lower},
    {"conv_transpose1d", lower},
    {"conv_transpose2d", lower},
    {"conv_transpose3d", lower},
    {"cosh", wide},
    {"cosine_embedding_loss", wide},
    {"cosine_similarity", wide},
    {"cross", widest},
    {"cross_entropy", wide},
    {"ctc_loss", wide},
    {"cumprod", wide},
    {"cumsum", wide},
    {"dist", wide},
    {"dot", widest},
    {"einsum", lower},
    {"erfinv", wide},
    {"exp", wide},
    {"exp2", wide},
    {"expm1", wide},
    {"gaussian_nll_loss", wide},
    {"grid_sample", widest},
    {"group_norm", wide},
    {"gru", lower},
    {"gru_step", lower},
    {"hinge_embedding_loss", wide},
    {"huber_loss", wide},
    {"index_add", widest},
    {"index_copy", widest},
    {"index_put", widest},
    {"interpolate", wide},
    {"kl_div", wide},
    {"l1_loss", wide},
    {"layer_norm", wide},
    {"linear", lower},
    {"linear_relu", lower},
    {"log", wide},
    {"log10", wide},
    {"log1p", wide},
    {"log2", wide},
    {"log_softmax", wide},
    {"logcumsumexp", wide},
    {"logsumexp", wide},
    {"lstm", lower},
    {"lstm_step", lower},
    {"margin_ranking_loss", wide},
    {"masked_scatter", widest},
    {"matmul", lower},
    {"matrix_norm", wide},
    {"mean", wide},
    {"mm", lower},
    {"mse_loss", wide},
    {"multi_dot", lower},
    {"multi_margin_loss", wide},
    {"multilabel_margin_loss", wide},
    {"multilabel_soft_margin_loss", wide},
    {"mv", lower},
    {"nll_loss", wide},
    {"norm", wide},
    {"pairwise_distance", wide},
    {"poisson_nll_loss", wide},
    {"pow", wide},
    {"prelu", lower},
    {"prod", wide},
    {"put", widest},
    {"reciprocal", wide},
    {"renorm", wide},
    {"rms_norm", wide},
    {"rnn", lower},
    {"rsqrt", wide},
    {"scaled_dot_product_attention", lower},
    {"scatter", widest},
    {"scatter_add", widest},
    {"scatter_reduce", widest},
    {"sinh", wide},
    {"smooth_l1_loss", wide},
    {"soft_margin_loss", wide},
    {"softmax", wide},
    {"softplus", wide},
    {"stack", widest},
    {"std", wide},
    {"sum", wide},
    {"tan", wide},
    {"tensordot", widest},
    {"triplet_margin_loss", wide},
    {"upsample", wide},
    {"var", wide},
    {"vdot", widest},
};
static_assert(std::is_sorted(std::begin(kRules), std::end(kRules), [](auto& a, auto& b) {
  return std::string_view(a.name) < std::string_view(b.name);
}));

}  // namespace

std::span<const NamedAutocastRule> autocast_rules() { return kRules; }

AutocastRule autocast_rule(std::string_view name) {
  const auto* found = std::lower_bound(
      std::begin(kRules), std::end(kRules), name,
      [](auto& rule, std::string_view wanted) { return std::string_view(rule.name) < wanted; });
  return found != std::end(kRules) && found->name == name ? found->rule : AutocastRule::none;
}

}  // namespace tenon
