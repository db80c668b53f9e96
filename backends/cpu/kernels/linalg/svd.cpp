// Singular values. Of few columns, by rotations of the rows of R, from a QR decomposition with
// column pivots, until all are orthogonal: one-sided Jacobi, which is at least as exact as
// bidiagonal matrices are (Drmac and Veselic, "New fast and accurate Jacobi SVD algorithm", 2008).
// Of more columns, by way of bidiagonal matrices, which is faster.
#include <limits>

#include "kernels/linalg/bidiagonal.h"
#include "kernels/linalg/decomposition.h"
#include "kernels/linalg/reflectors.h"

namespace tenon::cpu {
namespace {

constexpr int kMaxSweeps = 60;
// From so many rows and columns on, matrices become bidiagonal instead (docs/benchmarks.md).
constexpr int64_t kBidiagonal = 24;

// Rows of n elements each that become orthogonal; `turned`, if it has rows, gets the same
// rotations.
template <class T>
class Rows {
 public:
  Rows(std::vector<T>& rows, std::vector<T>& turned, int64_t n)
      : rows_(rows), turned_(turned), n_(n), squares_(static_cast<size_t>(n)) {}

  // Returns false where that takes too long.
  bool make_orthogonal() {
    for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
      for (int64_t i = 0; i < n_; ++i) squares_[at(i)] = dot(row(i), row(i), n_);
      bool rotated = false;
      for (int64_t i = 0; i < n_; ++i)
        for (int64_t j = i + 1; j < n_; ++j) rotated |= turn(i, j);
      if (!rotated) return true;
    }
    return false;
  }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }
  T* row(int64_t i) { return rows_.data() + i * n_; }

  // The rotation after which the two rows are orthogonal, the larger one first (Golub and Van Loan
  // 8.6.3). Rows that are nearly 0 have no direction.
  bool turn(int64_t i, int64_t j) {
    constexpr T kNothing = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
    T &a = squares_[at(i)], &b = squares_[at(j)];
    if (!(a > kNothing) || !(b > kNothing)) return false;
    const T product = dot(row(i), row(j), n_);
    const T least = std::numeric_limits<T>::epsilon() * std::sqrt(static_cast<T>(n_));
    if (std::abs(product) <= least * std::sqrt(a) * std::sqrt(b)) return false;
    const T zeta = (b - a) / (2 * product);
    const T t = std::copysign(1 / (std::abs(zeta) + std::hypot(T(1), zeta)), zeta);
    const T c = 1 / std::hypot(T(1), t), s = c * t;
    rotate(row(i), row(j), n_, c, s);
    if (!turned_.empty()) rotate(turned_.data() + i * n_, turned_.data() + j * n_, n_, c, s);
    a = std::max(T(0), a - t * product);
    b = std::max(T(0), b + t * product);
    return true;
  }

  std::vector<T>&rows_, &turned_;
  const int64_t n_;
  std::vector<T> squares_;
};

// Rows from `known` on become orthonormal to those before and to each other: unit vectors, less
// their parts in the others. All cannot be rejected: their squared lengths outside of a space of
// n - i dimensions sum to i.
template <class T>
void complete(T* rows, int64_t known, int64_t n) {
  int64_t next = 0;
  for (int64_t i = known; i < n; ++next) {
    T* const row = rows + i * n;
    std::fill(row, row + n, T(0));
    row[next] = 1;
    double length = 1;
    for (int turn = 0; turn < 2; ++turn) {
      for (int64_t other = 0; other < i; ++other)
        add_scaled(row, -dot(rows + other * n, row, n), rows + other * n, n);
      length = std::sqrt(static_cast<double>(dot(row, row, n)));
      if (turn == 0 && length * length * 4 * static_cast<double>(n) < 1) break;
      for (int64_t c = 0; c < n; ++c) row[c] = static_cast<T>(row[c] / length);
    }
    if (length * length * 4 * static_cast<double>(n) >= 1) ++i;
  }
}

// Decomposes a (m, n), m >= n, which is overwritten. Writes s in falling order and, if there are
// `vectors`, the rows of v^T (n, n), and u (m, columns).
template <class T>
bool tall_svd(std::vector<T>& a, int64_t m, int64_t n, int64_t columns, bool vectors, T* u, T* s,
              T* v) {
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  std::vector<int64_t> pivots(at(n)), order(at(n));
  Reflectors<T> reflectors(a.data(), m, n, pivots.data());
  std::vector<T> rows(at(n * n)), turned(at(vectors ? n * n : 0));
  for (int64_t i = 0; i < n; ++i) {
    std::copy(a.begin() + i * n + i, a.begin() + (i + 1) * n, rows.begin() + i * n + i);
    if (vectors) turned[at(i * n + i)] = 1;
  }
  if (!Rows<T>(rows, turned, n).make_orthogonal()) return false;
  std::vector<T> lengths(at(n));
  constexpr double kNothing = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
  for (int64_t i = 0; i < n; ++i) {
    double squares = 0;
    for (int64_t c = 0; c < n; ++c) {
      const double value = rows[at(i * n + c)];
      squares += value * value;
    }
    lengths[at(i)] = static_cast<T>(squares > kNothing ? std::sqrt(squares) : 0);
  }
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return lengths[at(i)] > lengths[at(j)]; });
  int64_t rank = 0;
  for (int64_t i = 0; i < n; ++i) rank += (s[i] = lengths[at(order[at(i)])]) > 0;
  if (!vectors) return true;
  for (int64_t i = 0; i < rank; ++i)
    for (int64_t c = 0; c < n; ++c)
      v[i * n + pivots[at(c)]] = rows[at(order[at(i)] * n + c)] / s[i];
  complete(v, rank, n);
  std::fill(u, u + m * columns, T(0));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < n; ++c) u[c * columns + i] = turned[at(order[at(i)] * n + c)];
  for (int64_t i = n; i < columns; ++i) u[i * columns + i] = 1;
  reflectors.apply_all(u, columns);
  return true;
}

// The same by way of R, where there are more rows than columns, and of a bidiagonal matrix.
template <class T>
bool bidiagonal_svd(std::vector<T>& a, int64_t m, int64_t n, int64_t columns, bool vectors, T* u,
                    T* s, T* v) {
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  ReflectorBlocks<T> blocks;
  if (m > n) {
    blocks = blocked_qr(a.data(), m, n);
    for (int64_t i = 1; i < n; ++i) std::fill_n(a.data() + i * n, i, T(0));
  }
  auto both = make_bidiagonal(a.data(), n);
  const int64_t stride = stride_of_rows<T>(n);
  std::vector<T> left(at(vectors ? n * stride : 0)), right(left.size());
  if (vectors) {
    turned_product(both.left, n, left.data(), stride);
    turned_product(both.right, n, right.data(), stride);
  }
  RotationQueue<T> turns_left(vectors ? left.data() : nullptr, n),
      turns_right(vectors ? right.data() : nullptr, n);
  double* const d = both.diagonal.data();
  if (!diagonalize(d, both.beside.data(), n, std::numeric_limits<T>::epsilon(), turns_left,
                   turns_right))
    return false;
  std::vector<int64_t> order(at(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return std::abs(d[i]) > std::abs(d[j]); });
  for (int64_t i = 0; i < n; ++i) s[i] = static_cast<T>(std::abs(d[order[at(i)]]));
  if (!vectors) return true;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t from = order[at(i)];
    const T sign = std::signbit(d[from]) ? T(-1) : T(1);
    for (int64_t c = 0; c < n; ++c) v[i * n + c] = sign * right[at(from * stride + c)];
  }
  if (m > n) std::fill(u, u + m * columns, T(0));
  write_columns(left.data(), stride, order, n, u, columns);
  for (int64_t i = n; i < columns; ++i) u[i * columns + i] = 1;
  apply_all(blocks, u, columns, false);
  return true;
}

// to (n, m) = x^T
template <class T>
void transpose(const T* x, int64_t m, int64_t n, T* to) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) to[j * m + i] = x[i * n + j];
}

// What of the singular value decomposition x (m, n) = u diag(s) vh is wanted: s alone, min(m, n)
// columns of u and rows of vh too, or all of them.
enum class SvdParts { values, thin, full };
// Returns false where the iteration does not converge. x is finite.
template <class T>
bool decompose_svd(const T* x, int64_t m, int64_t n, SvdParts parts, T* u, T* s, T* vh) {
  const bool wide = m < n, full = parts == SvdParts::full, vectors = parts != SvdParts::values,
             turned = wide && vectors;
  const int64_t k = std::min(m, n), longer = std::max(m, n), columns = full ? longer : k;
  const int exponent = exponent_of(x, m * n);
  std::vector<T> a(static_cast<size_t>(m * n));
  if (wide)
    transpose(x, m, n, a.data());
  else
    std::copy_n(x, m * n, a.data());
  scale(a.data(), m * n, -exponent);
  // A wide matrix is decomposed as x^T = U S V^T.
  std::vector<T> left(static_cast<size_t>(turned ? longer * columns : 0)),
      right(static_cast<size_t>(turned ? k * k : 0));
  const auto decompose = k < kBidiagonal ? tall_svd<T> : bidiagonal_svd<T>;
  const bool fine = decompose(a, longer, k, columns, vectors, turned ? left.data() : u, s,
                              turned ? right.data() : vh);
  if (!fine) return false;
  scale(s, k, exponent);
  if (turned) {
    transpose(right.data(), k, k, u);
    transpose(left.data(), longer, columns, vh);
  }
  return true;
}

struct Svd {
  template <class T>
  static tn_plan* make(const Request& request, const DecompositionRequest& r) {
    // U and V are made together.
    const bool vectors = request.has_output(0) || request.has_output(2),
               values = request.has_output(1);
    return plan_matrices(
        request, r, 20 * volume(r.m, r.n, r.k()), false,
        [r, vectors, values](const tn_run& run, int64_t i, uint32_t) {
          const int64_t m = r.m, n = r.n, k = r.k();
          const int64_t columns = r.full ? m : k, rows = r.full ? n : k;
          const T* const x = input_of<T>(run, 0, i * m * n);
          if (!all_finite(x, m * n)) return kNotFinite;
          T *u = output_of<T>(run, 0, i * m * columns), *vh = output_of<T>(run, 2, i * rows * n);
          std::vector<T> spare_u(static_cast<size_t>(vectors && !u ? m * columns : 0)),
              spare_s(static_cast<size_t>(values ? 0 : k)),
              spare_vh(static_cast<size_t>(vectors && !vh ? rows * n : 0));
          if (vectors && !u) u = spare_u.data();
          if (vectors && !vh) vh = spare_vh.data();
          T* const s = values ? output_of<T>(run, 1, i * k) : spare_s.data();
          const SvdParts parts = !vectors ? SvdParts::values
                                 : r.full ? SvdParts::full
                                          : SvdParts::thin;
          return decompose_svd(x, m, n, parts, u, s, vh) ? kFine : kNoConvergence;
        });
  }
};
const sdk::Kernel svd({"svd"}, make_decomposition<Svd>);

}  // namespace
}  // namespace tenon::cpu
