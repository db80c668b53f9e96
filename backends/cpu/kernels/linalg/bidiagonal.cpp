#include "kernels/linalg/bidiagonal.h"

#include <limits>
#include <utility>

#include "kernels/linalg/gemm.h"
#include "kernels/linalg/reflectors.h"

namespace tenon::cpu {
namespace {

// A panel of the rows and columns of a (n, n) from `first` on. The panel's reflectors change the
// rest of the matrix only after the last step, by - L^T R, where L has the rows v, x, v, x … and R
// the rows y, u, y, u …
template <class T>
class BidiagonalPanel {
 public:
  BidiagonalPanel(T* a, int64_t n, int64_t first, int64_t count, Bidiagonal<T>& result)
      : a_(a + first * n + first),
        step_(n),
        n_(n - first),
        first_(first),
        count_(count),
        result_(result),
        left_(first, n_, count),
        right_(first + 1, n_ - 1, std::min(count, n_ - 1)) {
    const auto size = [](int64_t rows, int64_t columns) {
      return static_cast<size_t>(rows * columns);
    };
    l_.resize(size(2 * count, n_)), r_.resize(size(2 * count, n_));
    few_.resize(size(2 * count, 1)), column_.resize(size(n_, 1));
  }

  void reduce() {
    for (int64_t i = 0; i < count_; ++i) {
      reduce_column(i);
      if (i + 1 < n_) reduce_row(i);
    }
    add_product<T>(n_ - count_, n_ - count_, 2 * count_, -1, l(0, count_).turned(), r(0, count_),
                   {a_ + count_ * step_ + count_, step_, 1});
    left_.close(), result_.left.push_back(std::move(left_));
    if (right_.count() == 0) return;
    right_.close(), result_.right.push_back(std::move(right_));
  }

 private:
  MatrixView<T> l(int64_t row, int64_t column) {
    return MatrixView<T>{l_.data(), n_, 1}.at(row, column);
  }
  MatrixView<T> r(int64_t row, int64_t column) {
    return MatrixView<T>{r_.data(), n_, 1}.at(row, column);
  }
  const T* copy_few(MatrixView<T> column, int64_t terms) {
    for (int64_t q = 0; q < terms; ++q) few_[static_cast<size_t>(q)] = column(q, 0);
    return few_.data();
  }
  void reduce_column(int64_t i) {
    const int64_t rows = n_ - i, rest = rows - 1, terms = 2 * i;
    T* const column = column_.data();
    for (int64_t j = 0; j < rows; ++j) column[j] = a_[(i + j) * step_ + i];
    add_product<T>(rows, terms, -1, l(0, i).turned(), copy_few(r(0, i), terms), column);
    const T tau = left_.tau(i) = reflect(column, rows);
    result_.diagonal[static_cast<size_t>(first_ + i)] = static_cast<double>(column[0]);
    column[0] = 1;
    std::copy_n(column, rows, left_.vector(i) + i);
    if (tau == 0 || rest == 0) return;
    std::copy_n(column, rows, &l(terms, i)(0, 0));
    T* const y = &r(terms, i + 1)(0, 0);
    add_product<T>(rest, rows, tau, MatrixView<const T>{a_ + i * step_ + i + 1, 1, step_}, column,
                   y);
    std::fill(few_.begin(), few_.end(), T(0));
    add_product<T>(terms, rows, tau, l(0, i), column, few_.data());
    add_product<T>(rest, terms, -1, r(0, i + 1).turned(), few_.data(), y);
  }

  void reduce_row(int64_t i) {
    const int64_t size = n_ - i - 1, terms = 2 * i + 1;
    T *const row = a_ + i * step_ + i + 1, *const x = &l(terms, i + 1)(0, 0);
    add_product<T>(size, terms, -1, r(0, i + 1).turned(), copy_few(l(0, i), terms), row);
    const T tau = right_.tau(i) = reflect(row, size);
    result_.beside[static_cast<size_t>(first_ + i)] = static_cast<double>(row[0]);
    row[0] = 1;
    std::copy_n(row, size, right_.vector(i) + i);
    if (tau == 0) return;
    std::copy_n(row, size, &r(terms, i + 1)(0, 0));
    add_product<T>(size, size, tau, MatrixView<const T>{row + step_, step_, 1}, row, x);
    std::fill(few_.begin(), few_.end(), T(0));
    add_product<T>(terms, size, tau, r(0, i + 1), row, few_.data());
    add_product<T>(size, terms, -1, l(0, i + 1).turned(), few_.data(), x);
  }

  T* const a_;
  const int64_t step_, n_, first_, count_;
  Bidiagonal<T>& result_;
  ReflectorBlock<T> left_, right_;
  std::vector<T> l_, r_, few_, column_;
};

struct Rotation {
  double c, s, r;  // c f + s g = r and c g - s f = 0
};
Rotation rotation_of(double f, double g) {
  constexpr double kTiny = 1e-280;
  if (g == 0) return {1, 0, f};
  const double squares = f * f + g * g;
  if (squares > kTiny) {
    const double r = std::sqrt(squares);
    return {f / r, g / r, r};
  }
  // A root of subnormal numbers has too few bits for an orthogonal matrix.
  f *= 0x1p500, g *= 0x1p500;
  const double r = std::hypot(f, g);
  return {f / r, g / r, r * 0x1p-500};
}

// The smaller singular value of ((f, g), (0, h)).
double smaller_singular_value(double f, double g, double h) {
  f = std::abs(f), g = std::abs(g), h = std::abs(h);
  const double small = std::min(f, h), large = std::max(f, h);
  if (small == 0) return 0;
  // small large / s, where s is the larger singular value.
  const double sum = std::hypot(f + h, g), difference = std::hypot(f - h, g);
  return small * (large / ((sum + difference) / 2));
}

// QR iteration on a bidiagonal matrix. A block whose small elements come first is read backwards,
// as that of the transposed matrix, so that the small ones are always at the end.
template <class T>
class BidiagonalIteration {
 public:
  BidiagonalIteration(double* d, double* e, int64_t n, double epsilon, RotationQueue<T>& left,
                      RotationQueue<T>& right)
      : d_(d), e_(e), n_(n), epsilon_(epsilon), left_(left), right_(right) {}

  bool run() {
    tolerance_ = epsilon_ * std::clamp(std::pow(epsilon_, -0.125), 10.0, 100.0);
    least_ = least_element();
    int64_t end = n_ - 1;
    for (int64_t sweeps = 0; sweeps < 40 * n_; ++sweeps) {
      while (end > 0 && is_nothing(end - 1)) --end;
      if (end <= 0) return true;
      int64_t start = end - 1;
      while (start > 0 && !is_nothing(start - 1)) --start;
      work_on(start, end);
    }
    return false;
  }

 private:
  // What counts as 0: no singular value is as small.
  double least_element() const {
    double least = std::abs(d_[0]), after = least;
    for (int64_t i = 1; i < n_ && least > 0; ++i) {
      after = std::abs(d_[i]) * (after / (after + std::abs(e_[i - 1])));
      least = std::min(least, after);
    }
    const auto size = static_cast<double>(n_);
    return std::max(tolerance_ * least / std::sqrt(size),
                    6 * size * size * static_cast<double>(std::numeric_limits<T>::min()));
  }
  bool is_nothing(int64_t i) {
    if (std::abs(e_[i]) <= least_) e_[i] = 0;
    return e_[i] == 0;
  }

  void work_on(int64_t start, int64_t end) {
    const bool turned = std::abs(d_[start]) < std::abs(d_[end]);
    if (turned) turn(start, end);
    double smallest = 0;
    if (!divides(start, end, smallest)) sweep(start, end, shift_of(start, end, smallest), turned);
    if (turned) turn(start, end);
  }
  void turn(int64_t start, int64_t end) {
    std::reverse(d_ + start, d_ + end + 1);
    std::reverse(e_ + start, e_ + end);
  }

  // Whether an element beside the diagonal may become 0 without harm to a singular value. If not,
  // `smallest` is about as large as the smallest.
  bool divides(int64_t start, int64_t end, double& smallest) {
    if (std::abs(e_[end - 1]) <= tolerance_ * std::abs(d_[end])) {
      e_[end - 1] = 0;
      return true;
    }
    double after = smallest = std::abs(d_[start]);
    for (int64_t i = start; i < end; ++i) {
      if (std::abs(e_[i]) <= tolerance_ * after) {
        e_[i] = 0;
        return true;
      }
      after = std::abs(d_[i + 1]) * (after / (after + std::abs(e_[i])));
      smallest = std::min(smallest, after);
    }
    return false;
  }

  double shift_of(int64_t start, int64_t end, double smallest) const {
    double largest = std::abs(d_[end]);
    for (int64_t i = start; i < end; ++i)
      largest = std::max({largest, std::abs(d_[i]), std::abs(e_[i])});
    if (static_cast<double>(n_) * tolerance_ * (smallest / largest) <=
        std::max(epsilon_, 0.01 * tolerance_))
      return 0;
    const double shift = smaller_singular_value(d_[end - 1], e_[end - 1], d_[end]);
    const double part = shift / std::abs(d_[start]);
    return part * part < epsilon_ ? 0 : shift;
  }

  void sweep(int64_t start, int64_t end, double shift, bool turned) {
    RotationQueue<T>&rows = turned ? right_ : left_, &columns = turned ? left_ : right_;
    rows.begin(turned ? end : start, turned), columns.begin(turned ? end : start, turned);
    if (shift == 0)
      sweep_without_shift(start, end, rows, columns);
    else
      sweep_with(shift, start, end, rows, columns);
  }
  static void turn(RotationQueue<T>& rows, const Rotation& r) {
    rows.add(static_cast<T>(r.c), static_cast<T>(-r.s));
  }
  void sweep_with(double shift, int64_t start, int64_t end, RotationQueue<T>& rows,
                  RotationQueue<T>& columns) {
    double *const d = d_, *const e = e_;
    double f = (std::abs(d[start]) - shift) * (std::copysign(1.0, d[start]) + shift / d[start]);
    double g = e[start];
    for (int64_t i = start; i < end; ++i) {
      const Rotation right = rotation_of(f, g);
      if (i > start) e[i - 1] = right.r;
      f = right.c * d[i] + right.s * e[i];
      e[i] = right.c * e[i] - right.s * d[i];
      g = right.s * d[i + 1];
      d[i + 1] *= right.c;
      const Rotation left = rotation_of(f, g);
      d[i] = left.r;
      f = left.c * e[i] + left.s * d[i + 1];
      d[i + 1] = left.c * d[i + 1] - left.s * e[i];
      if (i + 1 < end) {
        g = left.s * e[i + 1];
        e[i + 1] *= left.c;
      }
      turn(columns, right), turn(rows, left);
    }
    e[end - 1] = f;
  }
  void sweep_without_shift(int64_t start, int64_t end, RotationQueue<T>& rows,
                           RotationQueue<T>& columns) {
    Rotation right{1, 0, 0}, left{1, 0, 0};
    for (int64_t i = start; i < end; ++i) {
      right = rotation_of(d_[i] * right.c, e_[i]);
      if (i > start) e_[i - 1] = left.s * right.r;
      left = rotation_of(left.c * right.r, d_[i + 1] * right.s);
      d_[i] = left.r;
      turn(columns, right), turn(rows, left);
    }
    const double last = d_[end] * right.c;
    d_[end] = last * left.c;
    e_[end - 1] = last * left.s;
  }

  double *const d_, *const e_;
  const int64_t n_;
  const double epsilon_;
  RotationQueue<T>&left_, &right_;
  double tolerance_ = 0, least_ = 0;
};

}  // namespace

template <class T>
Bidiagonal<T> make_bidiagonal(T* a, int64_t n) {
  Bidiagonal<T> result;
  result.diagonal.resize(static_cast<size_t>(n));
  result.beside.resize(static_cast<size_t>(n));
  for (int64_t first = 0; first < n; first += kReflectorPanel)
    BidiagonalPanel<T>(a, n, first, std::min(kReflectorPanel, n - first), result).reduce();
  return result;
}

template <class T>
bool diagonalize(double* d, double* e, int64_t n, double epsilon, RotationQueue<T>& left,
                 RotationQueue<T>& right) {
  if (!BidiagonalIteration<T>(d, e, n, epsilon, left, right).run()) return false;
  left.flush(), right.flush();
  return true;
}

template Bidiagonal<float> make_bidiagonal(float*, int64_t);
template Bidiagonal<double> make_bidiagonal(double*, int64_t);
template bool diagonalize(double*, double*, int64_t, double, RotationQueue<float>&,
                          RotationQueue<float>&);
template bool diagonalize(double*, double*, int64_t, double, RotationQueue<double>&,
                          RotationQueue<double>&);

}  // namespace tenon::cpu
