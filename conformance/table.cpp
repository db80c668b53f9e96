#include <tenon/conformance/cases/convolution.h>
#include <tenon/conformance/cases/creation.h>
#include <tenon/conformance/cases/indexing.h>
#include <tenon/conformance/cases/linalg.h>
#include <tenon/conformance/cases/loss.h>
#include <tenon/conformance/cases/normalization.h>
#include <tenon/conformance/cases/optimizer.h>
#include <tenon/conformance/cases/pointwise.h>
#include <tenon/conformance/cases/pooling.h>
#include <tenon/conformance/cases/random.h>
#include <tenon/conformance/cases/reduction.h>
#include <tenon/conformance/cases/shape.h>

namespace tenon::conformance {

const std::vector<Family>& table() {
  static const std::vector<Family> families = {
      {"pointwise", pointwise_cases()}, {"reduction", reduction_cases()},
      {"linalg", linalg_cases()},       {"convolution", convolution_cases()},
      {"pooling", pooling_cases()},     {"normalization", normalization_cases()},
      {"loss", loss_cases()},           {"indexing", indexing_cases()},
      {"shape", shape_cases()},         {"creation", creation_cases()},
      {"random", random_cases()},       {"optimizer", optimizer_cases()},
  };
  return families;
}

}  // namespace tenon::conformance
