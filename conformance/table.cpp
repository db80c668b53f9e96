#include <tenon/conformance/cases/attention.h>
#include <tenon/conformance/cases/convolution.h>
#include <tenon/conformance/cases/creation.h>
#include <tenon/conformance/cases/decomposition.h>
#include <tenon/conformance/cases/indexing.h>
#include <tenon/conformance/cases/linalg.h>
#include <tenon/conformance/cases/loss.h>
#include <tenon/conformance/cases/metrics.h>
#include <tenon/conformance/cases/normalization.h>
#include <tenon/conformance/cases/optimizer.h>
#include <tenon/conformance/cases/order.h>
#include <tenon/conformance/cases/pointwise.h>
#include <tenon/conformance/cases/pooling.h>
#include <tenon/conformance/cases/pooling_more.h>
#include <tenon/conformance/cases/random.h>
#include <tenon/conformance/cases/recurrent.h>
#include <tenon/conformance/cases/reduction.h>
#include <tenon/conformance/cases/resampling.h>
#include <tenon/conformance/cases/scatter.h>
#include <tenon/conformance/cases/schedule.h>
#include <tenon/conformance/cases/shape.h>

namespace tenon::conformance {

namespace {
std::vector<Line> together(std::vector<Line> lines, const std::vector<Line>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}
}  // namespace

const std::vector<Family>& table() {
  static const std::vector<Family> families = {
      {"pointwise", pointwise_cases()},
      {"reduction", together(together(reduction_cases(), order_cases()), metrics_cases())},
      {"linalg", together(linalg_cases(), decomposition_cases())},
      {"convolution", convolution_cases()},
      {"pooling", together(together(pooling_cases(), more_pooling_cases()), resampling_cases())},
      {"normalization", normalization_cases()},
      {"loss", loss_cases()},
      {"indexing", together(indexing_cases(), scatter_cases())},
      {"shape", shape_cases()},
      {"creation", creation_cases()},
      {"random", random_cases()},
      {"optimizer", together(optimizer_cases(), schedule_cases())},
      {"attention", attention_cases()},
      {"recurrent", recurrent_cases()},
  };
  return families;
}

}  // namespace tenon::conformance
