// Systems of linear equations.
#include <algorithm>
#include <vector>

#include "kernels/linalg/decomposition.h"

namespace tenon::cpu {
namespace {

// x (n, columns) = a^-1 x
template <class T>
int64_t solve_in_place(const T* a, int64_t n, T* x, int64_t columns, uint32_t threads) {
  std::vector<T> factors(a, a + n * n);
  std::vector<int32_t> pivots(static_cast<size_t>(n));
  const auto lu = row_major(factors.data(), n), result = row_major(x, columns);
  Factorizer<T> factorizer(threads);
  if (const int64_t zero = factorizer.lu(lu, n, n, pivots.data()); zero >= 0) return zero;
  Factorizer<T>::exchange(result, columns, pivots.data(), 0, n);
  factorizer.solve_triangular(lu, n, result, columns, false, true);
  factorizer.solve_triangular(lu, n, result, columns, true, false);
  return kFine;
}

struct Solve {
  template <class T>
  static tn_plan* make(const Request& request, const DecompositionRequest& r) {
    const double work = cube(r.n) / 3 + volume(r.n, r.n, r.columns);
    return plan_matrices(request, r, work, true,
                         [n = r.n, k = r.columns](const tn_run& run, int64_t i, uint32_t threads) {
                           T* const x = output_of<T>(run, 0, i * n * k);
                           std::copy_n(input_of<T>(run, 1, i * n * k), n * k, x);
                           return solve_in_place(input_of<T>(run, 0, i * n * n), n, x, k, threads);
                         });
  }
};
const sdk::Kernel solve({"solve"}, make_decomposition<Solve>);

struct Inverse {
  template <class T>
  static tn_plan* make(const Request& request, const DecompositionRequest& r) {
    return plan_matrices(request, r, cube(r.n) * 4 / 3, true,
                         [n = r.n](const tn_run& run, int64_t i, uint32_t threads) {
                           T* const x = output_of<T>(run, 0, i * n * n);
                           std::fill(x, x + n * n, T(0));
                           for (int64_t d = 0; d < n; ++d) x[d * n + d] = 1;
                           return solve_in_place(input_of<T>(run, 0, i * n * n), n, x, n, threads);
                         });
  }
};
const sdk::Kernel inverse({"inv"}, make_decomposition<Inverse>);

struct SolveTriangular {
  template <class T>
  static tn_plan* make(const Request& request, const DecompositionRequest& r) {
    return plan_matrices(request, r, volume(r.n, r.n, r.columns) / 2, true,
                         [r](const tn_run& run, int64_t i, uint32_t threads) {
                           T* const x = output_of<T>(run, 0, i * r.n * r.columns);
                           std::copy_n(input_of<T>(run, 1, i * r.n * r.columns), r.n * r.columns,
                                       x);
                           Factorizer<T>(threads).solve_triangular(
                               row_major(input_of<T>(run, 0, i * r.n * r.n), r.n), r.n,
                               row_major(x, r.columns), r.columns, r.upper, r.unitriangular);
                           return kFine;
                         });
  }
};
const sdk::Kernel solve_triangular({"solve_triangular"}, make_decomposition<SolveTriangular>);

}  // namespace
}  // namespace tenon::cpu
