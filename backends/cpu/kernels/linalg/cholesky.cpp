#include <algorithm>

#include "kernels/linalg/decomposition.h"

namespace tenon::cpu {
namespace {

struct Cholesky {
  template <class T>
  static tn_plan* make(const Request& request, const DecompositionRequest& r) {
    return plan_matrices(
        request, r, cube(r.n) / 6, true, [n = r.n](const tn_run& run, int64_t i, uint32_t threads) {
          const T* const x = input_of<T>(run, 0, i * n * n);
          T* const l = output_of<T>(run, 0, i * n * n);
          for (int64_t row = 0; row < n; ++row) std::copy_n(x + row * n, row + 1, l + row * n);
          const int64_t pivot = Factorizer<T>(threads).cholesky(row_major(l, n), n);
          for (int64_t row = 0; row < n; ++row)
            std::fill(l + row * n + row + 1, l + (row + 1) * n, T(0));
          return pivot;
        });
  }
};
const sdk::Kernel cholesky({"cholesky"}, make_decomposition<Cholesky>);

}  // namespace
}  // namespace tenon::cpu
