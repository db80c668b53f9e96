// Eigenvalues of symmetric matrices: reduction to a tridiagonal matrix by reflectors, then QR steps
// with Wilkinson's shift (Golub and Van Loan, "Matrix Computations", 4th ed., 8.3).
#include <limits>

#include "kernels/linalg/decomposition.h"
#include "kernels/linalg/reflectors.h"

namespace tenon::cpu {
namespace {

// The symmetric a (n, n), both triangles of it, becomes a tridiagonal matrix. In its place are the
// reflectors: that of step k in column k, below the subdiagonal.
template <class T>
std::vector<T> make_tridiagonal(T* a, int64_t n, T* diagonal, T* beside) {
  std::vector<T> taus, v(static_cast<size_t>(n)), w(static_cast<size_t>(n));
  for (int64_t k = 0; k + 1 < n; ++k) {
    const int64_t size = n - k - 1;
    T* const corner = a + (k + 1) * n + k + 1;
    const T tau = make_reflector(a + (k + 1) * n + k, size, n);
    taus.push_back(tau);
    beside[k] = a[(k + 1) * n + k];
    if (tau == 0) continue;
    v[0] = 1;
    for (int64_t i = 1; i < size; ++i) v[static_cast<size_t>(i)] = a[(k + 1 + i) * n + k];
    for (int64_t i = 0; i < size; ++i)
      w[static_cast<size_t>(i)] = tau * dot(corner + i * n, v.data(), size);
    add_scaled(w.data(), -tau / 2 * dot(w.data(), v.data(), size), v.data(), size);
    for (int64_t i = 0; i < size; ++i) {
      add_scaled(corner + i * n, -v[static_cast<size_t>(i)], w.data(), size);
      add_scaled(corner + i * n, -w[static_cast<size_t>(i)], v.data(), size);
    }
  }
  for (int64_t i = 0; i < n; ++i) diagonal[i] = a[i * n + i];
  return taus;
}

// q (n, n) is the product of the reflectors.
template <class T>
void multiply_reflectors(const T* a, const std::vector<T>& taus, int64_t n, T* q) {
  std::vector<T> v(static_cast<size_t>(n)), w(static_cast<size_t>(n));
  std::fill(q, q + n * n, T(0));
  for (int64_t i = 0; i < n; ++i) q[i * n + i] = 1;
  for (auto k = static_cast<int64_t>(taus.size()); k-- > 0;) {
    const T tau = taus[static_cast<size_t>(k)];
    const int64_t size = n - k - 1;
    T* const corner = q + (k + 1) * n + k + 1;
    v[0] = 1;
    for (int64_t i = 1; i < size; ++i) v[static_cast<size_t>(i)] = a[(k + 1 + i) * n + k];
    std::fill(w.begin(), w.end(), T(0));
    for (int64_t i = 0; i < size; ++i)
      add_scaled(w.data(), v[static_cast<size_t>(i)], corner + i * n, size);
    for (int64_t i = 0; i < size; ++i)
      add_scaled(corner + i * n, -tau * v[static_cast<size_t>(i)], w.data(), size);
  }
}

// The rotation that turns (x, z) into (r, 0) with r = c x - s z.
template <class T>
void make_rotation(T x, T z, T& c, T& s) {
  const T r = std::hypot(x, z);
  c = r == 0 ? T(1) : x / r;
  s = r == 0 ? T(0) : -z / r;
}

// The eigenvalue of the last two rows and columns up to `end` that is closer to d[end].
template <class T>
T shift_of(const T* d, const T* e, int64_t end) {
  const T half = (d[end - 1] - d[end]) / 2, off = e[end - 1];
  if (half == 0) return d[end] - std::abs(off);
  return d[end] - off / (half + std::copysign(std::hypot(half, off), half)) * off;
}

// One step on rows `start` to `end`; `rows`, if not null, holds the eigenvectors in rows of n.
template <class T>
void step(T* d, T* e, int64_t start, int64_t end, T* rows, int64_t n) {
  T x = d[start] - shift_of(d, e, end), z = e[start];
  for (int64_t k = start; k < end && z != 0; ++k) {
    T c, s;
    make_rotation(x, z, c, s);
    if (k > start) e[k - 1] = c * e[k - 1] - s * z;
    const T a = d[k], b = e[k], f = d[k + 1];
    const T p = c * a - s * b, q = c * b - s * f;  // the first row of G T
    d[k] = c * p - s * q;
    e[k] = s * p + c * q;
    d[k + 1] = s * (s * a + c * b) + c * (s * b + c * f);
    x = e[k];
    if (k + 1 < end) {
      z = -s * e[k + 1];
      e[k + 1] *= c;
    }
    if (rows) rotate(rows + k * n, rows + (k + 1) * n, n, c, s);
  }
}

// The tridiagonal matrix becomes diagonal. Returns false where that takes too long.
template <class T>
bool diagonalize(T* d, T* e, int64_t n, T* rows) {
  int64_t steps = 0, end = n - 1;
  while (end > 0) {
    for (int64_t i = 0; i < end; ++i)
      if (std::abs(e[i]) <=
              std::numeric_limits<T>::epsilon() * (std::abs(d[i]) + std::abs(d[i + 1])) ||
          std::abs(e[i]) < std::numeric_limits<T>::min())
        e[i] = 0;
    while (end > 0 && e[end - 1] == 0) --end;
    if (end <= 0) break;
    if (++steps > 30 * n) return false;
    int64_t start = end - 1;
    while (start > 0 && e[start - 1] != 0) --start;
    step(d, e, start, end, rows, n);
  }
  return true;
}

// The eigenvalues w of the symmetric matrix with x's lower triangle, in rising order, and the
// eigenvectors in the columns of v, which may be null. Returns false where the iteration does not
// converge. The triangle is finite.
template <class T>
bool decompose_eigh(const T* x, int64_t n, T* w, T* v) {
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  std::vector<T> a(at(n * n)), d(at(n)), e(at(n)), rows(at(v ? n * n : 0));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) a[at(i * n + j)] = a[at(j * n + i)] = x[i * n + j];
  const int exponent = exponent_of(a.data(), n * n);
  scale(a.data(), n * n, -exponent);
  const auto taus = make_tridiagonal(a.data(), n, d.data(), e.data());
  if (v) {
    multiply_reflectors(a.data(), taus, n, v);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) rows[at(j * n + i)] = v[i * n + j];
  }
  if (!diagonalize(d.data(), e.data(), n, v ? rows.data() : nullptr)) return false;
  std::vector<int64_t> order(at(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return d[at(i)] < d[at(j)]; });
  for (int64_t i = 0; i < n; ++i) {
    w[i] = d[at(order[at(i)])];
    if (v)
      for (int64_t j = 0; j < n; ++j) v[j * n + i] = rows[at(order[at(i)] * n + j)];
  }
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
