// What functions that are made of operators do under an Autocast guard. Operators have their rule
// in OpSpec::autocast. Every name is that of a line of the table of operators (conformance/cases),
// and tests/ops/autocast_test.cpp checks each of them. The rules are PyTorch's for cuda
// (ATen/autocast_mode.h), and the same for further functions of these kinds: sums and losses.
#include <algorithm>
#include <cstring>
#include <vector>

#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/dispatch/autocast.h>

namespace tenon {

namespace {

constexpr auto kLower = AutocastRule::lower, kWide = AutocastRule::f32,
               kWidest = AutocastRule::widest;

constexpr NamedAutocastRule kRules[] = {
    {"addbmm", kLower},
    {"addmm", kLower},
    {"addmv", kLower},
    {"baddbmm", kLower},
    {"binary_cross_entropy_with_logits", kWide},
    {"bmm", kLower},
    {"cdist", kWide},
    {"chain_matmul", kLower},
    {"conv1d", kLower},
    {"conv3d", kLower},
    {"conv_transpose1d", kLower},
    {"conv_transpose2d", kLower},
    {"conv_transpose3d", kLower},
    {"cosine_embedding_loss", kWide},
    {"cosine_similarity", kWide},
    {"cross", kWidest},
    {"dist", kWide},
    {"dot", kWidest},
    {"einsum", kLower},
    {"gaussian_nll_loss", kWide},
    {"grid_sample", kWidest},
    {"gru", kLower},
    {"hinge_embedding_loss", kWide},
    {"index_add", kWidest},
    {"index_copy", kWidest},
    {"index_put", kWidest},
    {"interpolate", kWide},
    {"kl_div", kWide},
    {"lstm", kLower},
    {"margin_ranking_loss", kWide},
    {"masked_scatter", kWidest},
    {"matrix_norm", kWide},
    {"mm", kLower},
    {"multi_dot", kLower},
    {"multi_margin_loss", kWide},
    {"multilabel_margin_loss", kWide},
    {"multilabel_soft_margin_loss", kWide},
    {"mv", kLower},
    {"nll_loss", kWide},
    {"norm", kWide},
    {"pairwise_distance", kWide},
    {"poisson_nll_loss", kWide},
    {"prelu", kLower},
    {"put", kWidest},
    {"renorm", kWide},
    {"rnn", kLower},
    {"scatter_add", kWidest},
    {"soft_margin_loss", kWide},
    {"stack", kWidest},
    {"std", kWide},
    {"tensordot", kWidest},
    {"triplet_margin_loss", kWide},
    {"upsample", kWide},
    {"vdot", kWidest},
};

bool comes_before(const NamedAutocastRule& a, const NamedAutocastRule& b) {
  return std::strcmp(a.name, b.name) < 0;
}

// Operators register before main(), so all of them are known at the first question.
struct AllAutocastRules {
  AllAutocastRules() : sorted(std::begin(kRules), std::end(kRules)) {
    for (const Op* op = all_ops(); op; op = op->next)
      if (op->autocast != AutocastRule::none) sorted.push_back({op->name, op->autocast});
    std::sort(sorted.begin(), sorted.end(), comes_before);
  }
  std::vector<NamedAutocastRule> sorted;
};
constinit NeverDestroyed<AllAutocastRules> all_autocast_rules;

}  // namespace

std::span<const NamedAutocastRule> autocast_rules() { return all_autocast_rules.get().sorted; }

AutocastRule autocast_rule(std::string_view name) {
  const auto rules = autocast_rules();
  const auto found = std::lower_bound(
      rules.begin(), rules.end(), name,
      [](auto& rule, std::string_view wanted) { return std::string_view(rule.name) < wanted; });
  return found != rules.end() && found->name == name ? found->rule : AutocastRule::none;
}

}  // namespace tenon
