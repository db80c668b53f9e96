#include <iterator>
#include <utility>

#include <tenon/conformance/cases/attention.h>
#include <tenon/conformance/cases/convolution.h>
#include <tenon/conformance/cases/creation.h>
#include <tenon/conformance/cases/indexing.h>
#include <tenon/conformance/cases/indexing_scatter.h>
#include <tenon/conformance/cases/linalg.h>
#include <tenon/conformance/cases/linalg_decomposition.h>
#include <tenon/conformance/cases/loss.h>
#include <tenon/conformance/cases/normalization.h>
#include <tenon/conformance/cases/optimizer.h>
#include <tenon/conformance/cases/optimizer_schedule.h>
#include <tenon/conformance/cases/pointwise.h>
#include <tenon/conformance/cases/pooling.h>
#include <tenon/conformance/cases/pooling_resampling.h>
#include <tenon/conformance/cases/random.h>
#include <tenon/conformance/cases/recurrent.h>
#include <tenon/conformance/cases/reduction.h>
#include <tenon/conformance/cases/reduction_metrics.h>
#include <tenon/conformance/cases/reduction_order.h>
#include <tenon/conformance/cases/shape.h>

namespace tenon::conformance {

namespace {

// The lines are moved, of which an initializer list would make copies in each process.
template <class... More>
void add(std::vector<Family>& families, const char* name, std::vector<Line> lines, More... more) {
  (lines.insert(lines.end(), std::move_iterator(more.begin()), std::move_iterator(more.end())),
   ...);
  families.push_back({name, std::move(lines)});
}

std::vector<Family> all_families() {
  std::vector<Family> all;
  add(all, "pointwise", pointwise_cases());
  add(all, "reduction", reduction_cases(), order_cases(), metrics_cases());
  add(all, "linalg", linalg_cases(), decomposition_cases());
  add(all, "convolution", convolution_cases());
  add(all, "pooling", pooling_cases(), line_and_volume_pooling_cases(), resampling_cases());
  add(all, "normalization", normalization_cases());
  add(all, "loss", loss_cases());
  add(all, "indexing", indexing_cases(), scatter_cases());
  add(all, "shape", shape_cases());
  add(all, "creation", creation_cases());
  add(all, "random", random_cases());
  add(all, "optimizer", optimizer_cases(), schedule_cases());
  add(all, "attention", attention_cases());
  add(all, "recurrent", recurrent_cases());
  return all;
}

}  // namespace

const std::vector<Family>& table() {
  static const std::vector<Family> families = all_families();
  return families;
}

}  // namespace tenon::conformance
