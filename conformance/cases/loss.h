// Losses of classes, with every option, and of probabilities, numbers, pairs and sequences.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/normalization.h>

namespace tenon::conformance {

// PyTorch's name for a reduction, "mean" if there is none.
inline Reduction reduction_of(const json& attributes) {
  const std::string name = attributes.value("reduction", "mean");
  for (Reduction reduction :
       {Reduction::none, Reduction::mean, Reduction::sum, Reduction::batchmean})
    if (name == name_of(reduction)) return reduction;
  throw ValueError("no reduction is called " + name);
}

inline List call_binary_cross_entropy(const json& a, const List& in) {
  return {binary_cross_entropy(in[0], in[1], {at(in, 2), reduction_of(a)})};
}
inline List call_binary_cross_entropy_with_logits(const json& a, const List& in) {
  return {binary_cross_entropy_with_logits(in[0], in[1], {at(in, 2), reduction_of(a), at(in, 3)})};
}
// Half of numbers near one lies between 0 and 1, where it can be differentiated.
inline List call_binary_cross_entropy_of_halves(const json&, const List& in) {
  return {binary_cross_entropy(in[0] * 0.5, in[1] * 0.5, {.reduction = Reduction::none})};
}
inline List call_kl_div(const json& a, const List& in) {
  return {kl_div(in[0], in[1], reduction_of(a), a.value("log_target", false))};
}
inline List call_huber_loss(const json& a, const List& in) {
  return {huber_loss(in[0], in[1], reduction_of(a), a.value("delta", 1.0))};
}
inline List call_smooth_l1_loss(const json& a, const List& in) {
  return {smooth_l1_loss(in[0], in[1], reduction_of(a), a.value("beta", 1.0))};
}
inline List call_poisson_nll_loss(const json& a, const List& in) {
  return {poisson_nll_loss(
      in[0], in[1],
      {a.value("log_input", true), a.value("full", false), a.value("eps", 1e-8), reduction_of(a)})};
}
inline List call_gaussian_nll_loss(const json& a, const List& in) {
  return {gaussian_nll_loss(in[0], in[1], in[2],
                            {a.value("full", false), a.value("eps", 1e-6), reduction_of(a)})};
}
inline List call_hinge_embedding_loss(const json& a, const List& in) {
  return {hinge_embedding_loss(in[0], in[1], a.value("margin", 1.0), reduction_of(a))};
}
inline List call_margin_ranking_loss(const json& a, const List& in) {
  return {margin_ranking_loss(in[0], in[1], in[2], a.value("margin", 0.0), reduction_of(a))};
}
inline List call_soft_margin_loss(const json& a, const List& in) {
  return {soft_margin_loss(in[0], in[1], reduction_of(a))};
}
inline List call_triplet_margin_loss(const json& a, const List& in) {
  return {triplet_margin_loss(in[0], in[1], in[2],
                              {a.value("margin", 1.0), a.value("p", 2.0), a.value("eps", 1e-6),
                               a.value("swap", false), reduction_of(a)})};
}
inline List call_cosine_embedding_loss(const json& a, const List& in) {
  return {cosine_embedding_loss(in[0], in[1], in[2], a.value("margin", 0.0), reduction_of(a))};
}
inline List call_multi_margin_loss(const json& a, const List& in) {
  return {multi_margin_loss(
      in[0], in[1],
      {a.value("p", int64_t{1}), a.value("margin", 1.0), at(in, 2), reduction_of(a)})};
}
inline List call_multilabel_margin_loss(const json& a, const List& in) {
  return {multilabel_margin_loss(in[0], in[1], reduction_of(a))};
}
inline List call_multilabel_soft_margin_loss(const json& a, const List& in) {
  return {multilabel_soft_margin_loss(in[0], in[1], at(in, 2), reduction_of(a))};
}
// The loss takes the log-probabilities that log_softmax makes of the logits. Without lengths all of
// both count, and the labels, which the variants draw from 0 on, are moved past the blank.
inline List call_ctc_loss(const json& a, const List& in) {
  const CtcLossOptions options{a.value("blank", int64_t{0}), reduction_of(a),
                               a.value("zero_infinity", false)};
  const Tensor x = log_softmax(in[0], -1);
  if (in.size() == 4) return {ctc_loss(x, in[1], in[2], in[3], options)};
  const int64_t n = x.size(1);
  const TensorOptions whole{.dtype = i64, .device = x.device()};
  return {ctc_loss(x, in[1] + 1, full({n}, x.size(0), whole), full({n}, in[1].size(1), whole),
                   options)};
}

// Each reduction with arguments that take turns, on pairs of one shape.
inline std::vector<Variant> compared(std::initializer_list<const char*> args, Values second) {
  std::vector<Variant> variants;
  size_t turn = 0;
  for (const char* reduction : {"mean", "sum", "none"})
    for (const Shape& shape : {Shape{3, 2}, Shape{4}, Shape{64, 31}, Shape{2, 3, 7}}) {
      const std::string more = args.begin()[turn++ % args.size()];
      variants.push_back({"{'reduction': '" + std::string(reduction) + "'" + more + "}",
                          {In(shape), In(shape, second)}});
    }
  return variants;
}
// And with a third tensor of the shape that `third` makes of the first's.
inline std::vector<Variant> and_third(std::vector<Variant> variants, Values kind, bool row) {
  for (size_t i = 0; i < variants.size(); ++i) {
    const Shape& shape = variants[i].in[0].shape;
    variants[i].in.push_back(
        i % 4 == 3 && !row ? absent() : In(row ? Shape{shape[shape.size() - 1]} : shape, kind));
  }
  return variants;
}
// Rows of vectors, and a value for each row.
inline std::vector<Variant> of_rows(std::initializer_list<const char*> args, bool third) {
  std::vector<Variant> variants;
  size_t turn = 0;
  for (const char* reduction : {"mean", "sum", "none"})
    for (const Shape& shape : {Shape{3, 4}, Shape{40, 31}}) {
      const std::string more = args.begin()[turn++ % args.size()];
      variants.push_back(
          {"{'reduction': '" + std::string(reduction) + "'" + more + "}",
           {In(shape), In(shape), third ? In(shape) : In({shape[0]}, Values::constant)}});
    }
  return variants;
}
inline std::vector<Variant> of_labels(std::initializer_list<const char*> args, bool a_row,
                                      bool weighted) {
  std::vector<Variant> variants;
  size_t turn = 0;
  for (const char* reduction : {"mean", "sum", "none"})
    for (auto [n, c] :
         std::initializer_list<std::pair<int64_t, int64_t>>{{5, 3}, {64, 12}, {1, 1}}) {
      const std::string more = args.begin()[turn++ % args.size()];
      Variant v{"{'reduction': '" + std::string(reduction) + "'" + more + "}",
                {In(Shape{n, c}), index_in(a_row ? Shape{n, c} : Shape{n}, c)}};
      if (weighted) v.in.push_back(turn % 2 ? constant({c}) : absent());
      variants.push_back(v);
    }
  return variants;
}
inline std::vector<Variant> sequences() {
  return {{"{'reduction': 'mean'}", {{5, 2, 4}, index_in({2, 2}, 3)}},
          {"{'reduction': 'sum', 'zero_infinity': true}", {{1, 3, 4}, index_in({3, 1}, 3)}},
          {"{'reduction': 'mean'}", {{9, 2, 4}, index_in({2, 3}, 3)}},
          {"{'reduction': 'none'}", {{40, 5, 12}, index_in({5, 7}, 11)}},
          {"{'reduction': 'sum', 'zero_infinity': true}", {{6, 3, 5}, index_in({3, 5}, 4)}}};
}

inline std::vector<Line> losses_of_values() {
  const LineOptions ordinary_values = {.types_of_cpu = kHalves, .values = Values::ordinary};
  // clang-format off
  return {
      {"binary_cross_entropy_with_logits", call_binary_cross_entropy_with_logits, kReals, and_third(compared({""}, Values::constant), Values::constant, false), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary, .inputs = "input target weight pos_weight"}},
      {"binary_cross_entropy", call_binary_cross_entropy, kReals, {{"{'reduction': 'none'}", {{3, 2}, In({3, 2}, Values::near_one)}}}, kSums, {.difference = 0, .types_of_cpu = kHalves, .values = Values::near_one, .inputs = "input target weight"}},
      {"binary_cross_entropy", call_binary_cross_entropy_of_halves, kReals, {{"", {{3, 2}, {3, 2}}}}, kSums, {.types_of_cpu = kHalves, .values = Values::near_one, .no_reference = "the line above"}},
      {"kl_div", call_kl_div, kReals, compared({"", ", 'log_target': true"}, Values::positive), kSums, ordinary_values},
      {"kl_div", call_kl_div, kReals, {{"{'reduction': 'batchmean'}", {{3, 2}, positive_in({3, 2})}}}, kSums, ordinary_values},
      {"huber_loss", call_huber_loss, kReals, compared({"", ", 'delta': 0.7"}, Values::any), kSums, ordinary_values},
      {"smooth_l1_loss", call_smooth_l1_loss, kReals, compared({"", ", 'beta': 0.7", ", 'beta': 0.0"}, Values::any), kSums, ordinary_values},
      {"poisson_nll_loss", call_poisson_nll_loss, kReals, compared({"", ", 'log_input': false, 'full': true", ", 'full': true"}, Values::positive), kSums, {.types_of_cpu = kHalves, .values = Values::positive}},
      {"gaussian_nll_loss", call_gaussian_nll_loss, kReals, of_rows({"", ", 'full': true"}, true), kSums, {.types_of_cpu = kHalves, .values = Values::positive}},
      {"hinge_embedding_loss", call_hinge_embedding_loss, kReals, compared({"", ", 'margin': 0.4"}, Values::constant), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary}},
      {"margin_ranking_loss", call_margin_ranking_loss, kReals, and_third(compared({"", ", 'margin': 0.4"}, Values::any), Values::constant, true), kSums, ordinary_values},
      {"soft_margin_loss", call_soft_margin_loss, kReals, compared({""}, Values::constant), kSums, ordinary_values},
      {"triplet_margin_loss", call_triplet_margin_loss, kReals, of_rows({"", ", 'swap': true", ", 'p': 1.0, 'margin': 0.3"}, true), kLongSums, ordinary_values},
      {"cosine_embedding_loss", call_cosine_embedding_loss, kReals, of_rows({"", ", 'margin': -0.3"}, false), kLongSums, ordinary_values},
      {"multi_margin_loss", call_multi_margin_loss, kReals, of_labels({"", ", 'p': 2", ", 'margin': 0.5"}, false, true), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary, .inputs = "input target weight"}},
      {"multilabel_margin_loss", call_multilabel_margin_loss, kReals, of_labels({""}, true, false), kSums, ordinary_values},
      {"multilabel_soft_margin_loss", call_multilabel_soft_margin_loss, kReals, and_third(compared({""}, Values::constant), Values::constant, true), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary, .inputs = "input target weight"}},
      {"ctc_loss", call_ctc_loss, kReals, sequences(), kLongSums, {.types_of_cpu = kHalves, .values = Values::ordinary, .inputs = "logits targets input_lengths target_lengths"}},
  };
  // clang-format on
}

inline List call_cross_entropy(const json& a, const List& in) {
  return {cross_entropy(in[0], in[1],
                        {at(in, 2), reduction_of(a), a.value("ignore_index", int64_t{-100}),
                         a.value("label_smoothing", 0.0)})};
}
inline List call_nll_loss(const json& a, const List& in) {
  return {
      nll_loss(in[0], in[1], {at(in, 2), reduction_of(a), a.value("ignore_index", int64_t{-100})})};
}
inline List call_mse_loss(const json& a, const List& in) {
  return {mse_loss(in[0], in[1], reduction_of(a))};
}
inline List call_l1_loss(const json& a, const List& in) {
  return {l1_loss(in[0], in[1], reduction_of(a))};
}

// Every option with rows of every size; `smoothing`: label smoothing as well.
inline std::vector<Variant> labels(bool smoothing) {
  std::vector<Variant> variants;
  for (auto [n, c] : std::initializer_list<std::pair<int64_t, int64_t>>{
           {5, 3}, {1, 1}, {5, 2}, {7, 10}, {64, 12}, {3, 600}, {2, 3000}, {300, 5}, {0, 3}})
    for (const char* reduction : {"mean", "sum", "none"})
      for (int options = 0; options < (smoothing ? 8 : 4); ++options) {
        const bool weighted = options & 1, ignored = options & 2;
        if (n > 10 && options != (n + c) % 8) continue;  // one set of options for each
        variants.push_back(
            {"{'reduction': '" + std::string(reduction) + "'" +
                 (ignored ? ", 'ignore_index': 1" : "") +
                 (options & 4 ? ", 'label_smoothing': 0.1" : "") + "}",
             {In(Shape{n, c}), index_in({n}, c), weighted ? constant({c}) : absent()}});
      }
  // Pixels: a label for each.
  variants.push_back({"{'reduction': 'mean'}", {{2, 3, 2, 2}, index_in({2, 2, 2}, 3)}});
  variants.push_back({"{'reduction': 'none'}", {{2, 5, 7, 3}, index_in({2, 7, 3}, 5)}});
  variants.push_back({"{'reduction': 'mean'}", {{20000, 3}, index_in({20000}, 3)}, kF32});
  return variants;
}
inline std::vector<Variant> distances() {
  std::vector<Variant> variants;
  for (const char* reduction : {"mean", "sum", "none"})
    for (const Shape& shape : {Shape{3, 2}, Shape{}, Shape{64, 31}, Shape{2, 3, 7}})
      variants.push_back(
          {"{'reduction': '" + std::string(reduction) + "'}", {In(shape), In(shape)}});
  return variants;
}

inline std::vector<Line> loss_cases() {
  // clang-format off
  std::vector<Line> lines = {
      {"cross_entropy", call_cross_entropy, kReals, labels(true), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary, .inputs = "input target weight"}},
      {"nll_loss", call_nll_loss, kReals, labels(false), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary, .inputs = "input target weight"}},
      {"mse_loss", call_mse_loss, kReals, distances(), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary}},
      {"l1_loss", call_l1_loss, kReals, distances(), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary}},
  };
  // clang-format on
  const auto more = losses_of_values();
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

}  // namespace tenon::conformance
