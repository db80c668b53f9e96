// Triangular systems, and the decompositions of Cholesky and LU: halves of matrices by
// recursion down to small blocks, so that nearly all work is products (Gustavson, "Recursion leads
// to automatic variable blocking for dense linear-algebra algorithms", 1997; Toledo, "Locality of
// reference in LU decomposition with partial pivoting", 1997).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/linalg/view.h"

namespace tenon::cpu {

template <class T>
class Factorizer {
 public:
  using View = MatrixView<T>;
  using ConstView = MatrixView<const T>;

  // `threads` 1 keeps it on the calling thread, for use inside a parallel loop. Results do not
  // depend on the number of threads.
  explicit Factorizer(uint32_t threads) : threads_(threads) {}

  // b (n, k) = a^-1 b, where only the upper or lower triangle of a (n, n) is read, and its diagonal
  // unless `unit`. Rows of b are contiguous.
  void solve_triangular(ConstView a, int64_t n, View b, int64_t k, bool upper, bool unit);
  // The L of a (n, n), of which the lower triangle is read, with zeros above. Returns the number of
  // the first pivot that is not positive, or -1. Rows of both are contiguous.
  int64_t cholesky(ConstView a, View l, int64_t n);
  // a (m, n) becomes L and U; row i was exchanged with row pivots[i], of min(m, n). Returns the
  // number of the first pivot that is 0, or -1. Rows of a are contiguous.
  int64_t lu(View a, int64_t m, int64_t n, int32_t* pivots);

  // Exchanges rows of a (…, columns) as lu did.
  static void exchange(View a, int64_t columns, const int32_t* pivots, int64_t begin, int64_t end);

 private:
  enum class Part { all, upper };

  // task(i) for i in [0, n), where each takes about `work` multiply-adds.
  template <class Task>
  void share(int64_t n, int64_t work, Task&& task) const;
  // c (m, n) -= a (m, k) b (k, n), where rows of b and c are contiguous.
  void subtract_product(int64_t m, int64_t n, int64_t k, ConstView a, ConstView b, View c,
                        Part wanted = Part::all) const;
  void solve_lower(ConstView a, int64_t n, View b, int64_t k, bool unit) const;
  // The upper triangle of u (n, n) becomes L^T. What comes behind column `end` stays as it is.
  int64_t cholesky_upper(View u, int64_t n, int64_t end);
  int64_t tall_lu(View a, int64_t m, int64_t n, int32_t* pivots);

  uint32_t threads_;
  std::vector<T> scratch_;
};

extern template class Factorizer<float>;
extern template class Factorizer<double>;

}  // namespace tenon::cpu
