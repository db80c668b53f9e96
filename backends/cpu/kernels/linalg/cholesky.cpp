#include "kernels/linalg/decomposition.h"

namespace tenon::cpu {
namespace {

struct Cholesky {
  template <class T>
  static tn_plan* make(const Request& request, const DecompositionRequest& r) {
    return plan_matrices(
        request, r, cube(r.n) / 6, true, [n = r.n](const tn_run& run, int64_t i, uint32_t threads) {
          return Factorizer<T>(threads).cholesky(row_major(input_of<T>(run, 0, i * n * n), n),
                                                 row_major(output_of<T>(run, 0, i * n * n), n), n);
        });
  }
};
const sdk::Kernel cholesky({"cholesky"}, make_decomposition<Cholesky>);

}  // namespace
}  // namespace tenon::cpu
