// Eigenvalues of symmetric matrices, by way of tridiagonal ones.
#include <limits>

#include "kernels/linalg/decomposition.h"
#include "kernels/linalg/reflectors.h"
#include "kernels/linalg/tridiagonal.h"

namespace tenon::cpu {
namespace {

// The eigenvalues w of the symmetric matrix with x's lower triangle, in rising order, and the
// eigenvectors in the columns of v, which may be null. Returns false where the iteration does not
// converge. The triangle is finite.
template <class T>
bool decompose_eigh(const T* x, int64_t n, T* w, T* v) {
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  const int64_t stride = stride_of_rows<T>(n);
  std::vector<T> a(at(n * n)), rows(at(v ? n * stride : 0));
  std::vector<double> d(at(n)), e(at(n));
  for (int64_t i = 0; i < n; ++i) std::copy(x + i * n, x + i * n + i + 1, a.begin() + i * n);
  const int exponent = exponent_of(a.data(), n * n);
  scale(a.data(), n * n, -exponent);
  const auto blocks = make_tridiagonal(a.data(), n, d.data(), e.data());
  if (v) turned_product(blocks, n, rows.data(), stride);
  RotationQueue<T> rotations(v ? rows.data() : nullptr, n);
  if (!diagonalize(d.data(), e.data(), n, std::numeric_limits<T>::epsilon(), rotations))
    return false;
  std::vector<int64_t> order(at(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return d[at(i)] < d[at(j)]; });
  for (int64_t i = 0; i < n; ++i) w[i] = static_cast<T>(d[at(order[at(i)])]);
  if (v) write_columns(rows.data(), stride, order, n, v, n);
  scale(w, n, exponent);
  return true;
}

struct Eigh {
  template <class T>
  static tn_plan* make(const Request& request, const DecompositionRequest& r) {
    return plan_matrices(
        request, r, 10 * cube(r.n), false,
        [n = r.n, spare = !request.has_output(0)](const tn_run& run, int64_t i, uint32_t) {
          const T* const x = input_of<T>(run, 0, i * n * n);
          for (int64_t row = 0; row < n; ++row)
            if (!all_finite(x + row * n, row + 1)) return kNotFinite;
          std::vector<T> unwanted(static_cast<size_t>(spare ? n : 0));
          T* const w = spare ? unwanted.data() : output_of<T>(run, 0, i * n);
          return decompose_eigh(x, n, w, output_of<T>(run, 1, i * n * n)) ? kFine : kNoConvergence;
        });
  }
};
const sdk::Kernel eigh({"eigh"}, make_decomposition<Eigh>);

}  // namespace
}  // namespace tenon::cpu
