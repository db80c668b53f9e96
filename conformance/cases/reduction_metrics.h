// Metrics (modules/metrics.h), which are made of operators: the reference cases are all that the
// kit runs.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/modules/metrics.h>

namespace tenon::conformance {

inline List call_accuracy(const json&, const List& in) { return {metrics::accuracy(in[0], in[1])}; }
inline List call_top_k_accuracy(const json& a, const List& in) {
  return {metrics::top_k_accuracy(in[0], in[1], a.at("k"))};
}
inline List call_confusion_matrix(const json& a, const List& in) {
  return {metrics::confusion_matrix(in[0], in[1], a.at("num_classes"))};
}
inline List call_f1_score(const json& a, const List& in) {
  const std::string average = a.value("average", "macro");
  return {metrics::f1_score(in[0], in[1], a.at("num_classes"), average)};
}
inline List call_auroc(const json&, const List& in) { return {metrics::auroc(in[0], in[1])}; }

inline std::vector<Line> metrics_cases() {
  std::vector<Line> lines;
  const auto add = [&](const char* name, Call call) {
    lines.push_back({name, call, kNoTypes, {}, {.difference = 0, .results_in_f64 = true}});
  };
  add("accuracy", call_accuracy);
  add("top_k_accuracy", call_top_k_accuracy);
  add("confusion_matrix", call_confusion_matrix);
  add("f1_score", call_f1_score);
  add("auroc", call_auroc);
  return lines;
}

}  // namespace tenon::conformance
