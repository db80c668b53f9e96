#include <utility>

#include "kernels/linalg/decomposition.h"

namespace tenon::cpu {
namespace {

struct LuFactor {
  template <class T>
  static tn_plan* make(const Request& request, const DecompositionRequest& r) {
    return plan_matrices(
        request, r, volume(r.m, r.n, r.k()) / 3, true,
        [m = r.m, n = r.n, k = r.k(), makes = request.has_output(0),
         spare = !request.has_output(1)](const tn_run& run, int64_t i, uint32_t threads) {
          std::vector<T> factors(static_cast<size_t>(makes ? 0 : m * n));
          T* const lu = makes ? output_of<T>(run, 0, i * m * n) : factors.data();
          std::vector<int32_t> unwanted(static_cast<size_t>(spare ? k : 0));
          int32_t* const pivots = spare ? unwanted.data() : output_of<int32_t>(run, 1, i * k);
          std::copy_n(input_of<T>(run, 0, i * m * n), m * n, lu);
          Factorizer<T>(threads).lu(row_major(lu, n), m, n, pivots);
          for (int64_t p = 0; p < k; ++p) ++pivots[p];
          return kFine;
        });
  }
};
const sdk::Kernel lu_factor({"lu_factor"}, make_decomposition<LuFactor>);

// The order of rows that pivots leave.
tn_plan* make_permutation(tn_device*, const Request& request) {
  const auto r = sdk::PermutationRequest::from(request);
  if (r.count == 0) return empty_plan();
  return sdk::make_plan(
      [r](const tn_run& run) {
        for (int64_t i = 0; i < r.count; ++i) {
          const auto* const pivots = static_cast<const int32_t*>(run.inputs[0]) + i * r.k;
          auto* const places = static_cast<int64_t*>(run.outputs[0]) + i * r.rows;
          for (int64_t row = 0; row < r.rows; ++row) places[row] = row;
          for (int64_t p = 0; p < r.k; ++p) {
            if (pivots[p] < 1 || pivots[p] > r.rows)
              throw sdk::Error(TN_CODE_OUT_OF_RANGE,
                               sdk::text("pivot {} at position {} lies outside [1, {}]", pivots[p],
                                         i * r.k + p, r.rows));
            std::swap(places[p], places[pivots[p] - 1]);
          }
        }
      },
      {0, 50 + static_cast<uint64_t>(2 * r.count * r.rows)});
}
const sdk::Kernel permutations({"lu_permutation"}, make_permutation);

}  // namespace
}  // namespace tenon::cpu
