#include "kernels/linalg/gemm.h"

#include "runtime/common.h"
#include "runtime/nest.h"
#include "simd/packet.h"
#include "simd/sum_lanes.h"

namespace tenon::cpu {
namespace {

namespace internal = Eigen::internal;
using Eigen::ColMajor, Eigen::RowMajor;

// The largest blocks that a task packs. They are chosen so that a block of B, `columns` x `depth`,
// stays in the L2 cache beside one of A.
constexpr int64_t kBlockColumns = 384, kBlockRows = 256, kBlockDepth = 256;
// Up to this many rows or columns, and from this many packets of k on, dot products along k are
// faster than Eigen, which would pack an operand that is hardly used again (docs/benchmarks.md).
constexpr int64_t kFewDots = 12, kDeepDots = 10;
// Up to this depth, a product takes little more time than to write C once.
constexpr int64_t kShallow = 4;
// How many bytes of C are written per nanosecond then.
constexpr double kOuterBytesPerNs = 30;
// Multiply-adds below which waking another thread costs more than it saves.
constexpr int64_t kSerialWork = 1 << 20, kSerialVectorWork = 1 << 18;
// Multiply-adds of floats per nanosecond with AVX-512, AVX2 and less.
constexpr double kSumsPerNs = kVectorBytes == 64 ? 50 : kVectorBytes == 32 ? 44 : 12.5;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t n, int64_t unit) { return ceil_div(n, unit) * unit; }
template <class T>
constexpr int64_t kLine = 64 / sizeof(T);

// Eigen sees C^T = B^T A^T, whose columns are contiguous. What a kernel does for an element depends
// on where it lies within the registers' tile of kTileColumns x kTileRows: tasks begin at whole
// tiles.
template <class T>
constexpr int64_t kTileColumns = internal::gebp_traits<T, T>::mr;
template <class T>
constexpr int64_t kTileRows = internal::gebp_traits<T, T>::nr;

// Eigen's blocks, which lie in the workspace.
template <class T>
struct Blocking : internal::level3_blocking<T, T> {
  Blocking(int64_t rows, int64_t columns, int64_t depth, T* scratch) {
    this->m_mc = columns;
    this->m_nc = rows;
    this->m_kc = depth;
    if (!scratch) return;  // Eigen allocates memory
    this->m_blockA = scratch;
    this->m_blockB = scratch + round_up(columns * depth, kLine<T>);
  }
};

// c += factor a b
template <class T, int OrderA, int OrderB>
void product(const GemmShape& s, const T* a, const T* b, T* c, int64_t c_row, Blocking<T>& blocking,
             T factor) {
  internal::general_matrix_matrix_product<int64_t, T, OrderA, false, T, OrderB, false, RowMajor,
                                          1>::run(s.m, s.n, s.k, a,
                                                  OrderA == RowMajor ? s.a_row : s.a_col, b,
                                                  OrderB == RowMajor ? s.b_row : s.b_col, c, 1,
                                                  c_row, factor, blocking, nullptr);
}

template <class T>
auto product_of(const GemmShape& s) {
  return s.a_col == 1
             ? s.b_col == 1 ? product<T, RowMajor, RowMajor> : product<T, RowMajor, ColMajor>
         : s.b_col == 1 ? product<T, ColMajor, RowMajor>
                        : product<T, ColMajor, ColMajor>;
}

// y += factor matrix x
template <class T, int Order>
void product_with_vector(int64_t rows, int64_t k, const T* matrix, int64_t stride, const T* x, T* y,
                         T factor = 1) {
  using Matrix = internal::const_blas_data_mapper<T, int64_t, Order>;
  using Vector = internal::const_blas_data_mapper<T, int64_t, RowMajor>;
  internal::general_matrix_vector_product<int64_t, T, Matrix, Order, false, T, Vector, false>::run(
      rows, k, Matrix(matrix, stride), Vector(x, 1), y, 1, factor);
}

// Dot products of Rows rows with Columns others, all contiguous along k: lanes run over k. y is
// row-major, Columns wide, and has room for 16.
template <class T, int Rows, int Columns>
void dots(int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_row, T* y) {
  Vec<T> acc[Rows * Columns];
#pragma GCC unroll 16
  for (auto& v : acc) v = Vec<T>{};
  for_lanes<T>(k, [&](int64_t p, auto part) {
    Vec<T> x[Rows];
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) x[i] = load(a + i * a_row + p, part);
#pragma GCC unroll 4
    for (int j = 0; j < Columns; ++j) {
      Vec<T> v = load(b + j * b_row + p, part);
#ifdef EIGEN_VECTORIZE_AVX512
      // GCC would read it again for each row, and three rows then take half as long again.
      if constexpr (Rows > 1) asm("" : "+v"(v));
#endif
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) acc[i * Columns + j] += x[i] * v;
    }
  });
  sum_lanes<T>(acc, y);
}

// Rows of C from as many of A and all of B, whose rows are contiguous: lanes run over n. What is of
// A stays in registers.
template <class T, int Rows, int Depth>
void outer(const GemmShape& s, const T* a, const T* b, const T* bias, T* c) {
  Vec<T> x[Rows][Depth];
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int p = 0; p < Depth; ++p) x[i][p] = splat<T>(a[i * s.a_row + p * s.a_col]);
  const int64_t b_row = s.b_row, c_row = s.n;
  for_lanes<T>(s.n, [&](int64_t j, auto part) {
    Vec<T> y[Rows];
#pragma GCC unroll 4
    for (auto& v : y) v = bias ? load(bias + j, part) : Vec<T>{};
#pragma GCC unroll 4
    for (int p = 0; p < Depth; ++p) {
      const Vec<T> v = load(b + p * b_row + j, part);
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) y[i] += x[i][p] * v;
    }
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) store(c + i * c_row + j, y[i], part);
  });
}

template <class T>
using Outer = void (*)(const GemmShape&, const T*, const T*, const T*, T*);
template <class T>
constexpr Outer<T> kOuter[kShallow][2] = {{outer<T, 1, 1>, outer<T, 2, 1>},
                                          {outer<T, 1, 2>, outer<T, 2, 2>},
                                          {outer<T, 1, 3>, outer<T, 2, 3>},
                                          {outer<T, 1, 4>, outer<T, 2, 4>}};

template <class T>
using Dots = void (*)(int64_t, const T*, int64_t, const T*, int64_t, T*);
template <class T>
constexpr Dots<T> kDots[4][4] = {{dots<T, 1, 1>, dots<T, 1, 2>, dots<T, 1, 3>, dots<T, 1, 4>},
                                 {dots<T, 2, 1>, dots<T, 2, 2>, dots<T, 2, 3>, dots<T, 2, 4>},
                                 {dots<T, 3, 1>, dots<T, 3, 2>, dots<T, 3, 3>, dots<T, 3, 4>},
                                 {dots<T, 4, 1>, dots<T, 4, 2>, dots<T, 4, 3>, dots<T, 4, 4>}};

}  // namespace

template <class T>
Gemm<T>::Gemm(const GemmShape& shape, uint32_t threads, const Finish& finish)
    : given_(shape), s_(shape), finish_(finish) {
  // Eigen's matrices are contiguous along one dimension, and vectors are as well. The stride of a
  // dimension of size 1 says nothing.
  if (s_.k == 1) s_.a_col = s_.b_row = 1;
  copy_a_ = s_.a_col != 1 && (s_.m == 1 || s_.a_row != 1);
  copy_b_ = s_.b_row != 1 && (s_.n == 1 || s_.b_col != 1);
  if (copy_a_) s_.a_row = s_.k, s_.a_col = 1;
  if (copy_b_) s_.b_row = s_.n, s_.b_col = 1;
  const double copied = static_cast<double>(s_.k) * (copy_a_ ? static_cast<double>(s_.m) : 0.0) +
                        static_cast<double>(s_.k) * (copy_b_ ? static_cast<double>(s_.n) : 0.0);
  if (copied > 0x1p48)
    throw sdk::Error(TN_CODE_OUT_OF_MEMORY,
                     "contiguous copies of its operands have more than 2^48 elements");
  if (copy_a_) copies_ += round_up(s_.m * s_.k, kLine<T>);
  if (copy_b_) copies_ += round_up(s_.k * s_.n, kLine<T>);

  const int64_t few = std::min(s_.m, s_.n);
  const bool deep = s_.k >= kWidth<T> * (few == 2 ? 1 : kDeepDots);
  const bool along_k = s_.a_col == 1 && s_.b_row == 1;
  way_ = few <= 1                                        ? Way::kVector
         : few <= kFewDots && deep && along_k            ? Way::kDots
         : s_.k > 0 && s_.k <= kShallow && s_.b_col == 1 ? Way::kOuter
                                                         : Way::kBlocked;
  const bool by_bytes = way_ == Way::kVector || way_ == Way::kOuter;
  const int64_t serial = by_bytes ? kSerialVectorWork : kSerialWork;
  threaded_ = threads > 1 && s_.work() + finish_ns() * kSumsPerNs > static_cast<double>(serial);
  if (way_ == Way::kBlocked) plan_blocks(threaded_ ? threads : 1);
  const int64_t elements = copies_ + m_tasks_ * n_tasks_ * slot_elements_;
  workspace_bytes_ = static_cast<uint64_t>(elements) * sizeof(T);
}

template <class T>
void Gemm<T>::plan_blocks(uint32_t threads) {
  // Threads share no panels: to fetch one that another core has packed costs more than to pack it
  // again. The best grid is the one in which a thread has the least to pack.
  double least = 0;
  for (int64_t m_tasks = 1; m_tasks <= threads; ++m_tasks) {
    if (m_tasks > ceil_div(s_.m, kTileRows<T>)) break;
    const int64_t n_tasks = std::min(threads / m_tasks, ceil_div(s_.n, kTileColumns<T>));
    const auto rows = static_cast<double>(ceil_div(s_.m, m_tasks));
    const auto columns = static_cast<double>(round_up(ceil_div(s_.n, n_tasks), kTileColumns<T>));
    const double cost = rows * columns + 12 * (rows + columns);
    if (least != 0 && cost >= least) continue;
    least = cost;
    m_tasks_ = m_tasks;
    n_tasks_ = n_tasks;
  }
  // The depth of blocks decides the order of summation, so it depends only on the shape.
  const int64_t parts = std::max<int64_t>(1, ceil_div(s_.k, kBlockDepth + kBlockDepth / 4));
  k_block_ = parts == 1 ? std::max<int64_t>(1, s_.k) : round_up(ceil_div(s_.k, parts), 8);
  m_block_ = std::min<int64_t>(kBlockRows, round_up(ceil_div(s_.m, m_tasks_), kTileRows<T>));
  n_block_ = std::min<int64_t>(round_up(kBlockColumns, kTileColumns<T>),
                               round_up(ceil_div(s_.n, n_tasks_), kTileColumns<T>));
  slot_elements_ =
      round_up(n_block_ * k_block_, kLine<T>) + round_up(m_block_ * k_block_, kLine<T>);
}

template <class T>
uint64_t Gemm<T>::cost_ns() const {
  // Multiply-adds of floats per nanosecond in dot products. Operands are read at about 100 bytes
  // per nanosecond, and to pack a float takes a quarter of a nanosecond.
  constexpr double kAlongRows = kVectorBytes == 64 ? 42 : kVectorBytes == 32 ? 19.5 : 8.75;
  const double rate = (way_ == Way::kDots ? kAlongRows : kSumsPerNs) * 4 / sizeof(T);
  const auto m = static_cast<double>(s_.m), n = static_cast<double>(s_.n),
             k = static_cast<double>(s_.k);
  const double bytes = (m * k + k * n + m * n) * sizeof(T);
  if (way_ == Way::kOuter)
    return 50 + static_cast<uint64_t>(std::min(bytes / kOuterBytesPerNs + finish_ns(), 0x1p60));
  const double packed = way_ == Way::kBlocked ? (m * k + k * n) * sizeof(T) : 0;
  const double sums = s_.work() / rate;
  const double all = sums + bytes / 100 + packed / 16 + finish_ns();
  return 50 + static_cast<uint64_t>(std::min(all, 0x1p60));
}

template <class T>
void Gemm<T>::run(const T* a, const T* b, const T* bias, T* c, void* workspace,
                  const Finish::Run& with) const {
  if (s_.m == 0 || s_.n == 0) return;
  T* scratch = static_cast<T*>(workspace);
  const auto copy = [&](const T* from, int64_t row, int64_t col, int64_t rows, int64_t cols) {
    move_tile(sizeof(T), scratch, cols, 1, from, row, col, rows, cols);
    return std::exchange(scratch, scratch + round_up(rows * cols, kLine<T>));
  };
  if (copy_a_) a = copy(a, given_.a_row, given_.a_col, s_.m, s_.k);
  if (copy_b_) b = copy(b, given_.b_row, given_.b_col, s_.k, s_.n);
  if (way_ == Way::kVector) return run_vector(a, b, bias, c, with);
  if (way_ == Way::kDots) return run_dots(a, b, bias, c, with);
  if (way_ == Way::kOuter) return run_outer(a, b, bias, c, with);
  parallel_for(m_tasks_ * n_tasks_, 1, [&](int64_t begin, int64_t end, uint32_t) {
    // Each task, not each slot, has its share of the workspace.
    for (int64_t task = begin; task < end; ++task)
      run_task(task, a, b, bias, c, scratch + task * slot_elements_, with);
  });
}

template <class T>
void Gemm<T>::run_vector(const T* a, const T* b, const T* bias, T* c,
                         const Finish::Run& with) const {
  // The matrix is A, or B^T.
  const bool row = s_.n > 1;
  const int64_t length = row ? s_.n : s_.m;
  const T *matrix = row ? b : a, *x = row ? a : b;
  const int64_t step = row ? s_.b_col : s_.a_row, along = row ? s_.b_row : s_.a_col;
  // The division into tasks depends only on the shape.
  constexpr int64_t unit = 128;
  const int64_t part =
      round_up(std::max(unit, kSerialVectorWork / 2 / std::max<int64_t>(1, s_.k)), unit);
  const int64_t tasks = ceil_div(length, part);
  parallel_for(tasks, threaded_ ? 1 : tasks, [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t i = task * part, count = std::min(part, length - i);
      for (int64_t k = 0; k < count; ++k) c[i + k] = bias ? bias[row ? i + k : 0] : T(0);
      if (along == 1)
        product_with_vector<T, RowMajor>(count, s_.k, matrix + i * step, step, x, c + i);
      else
        product_with_vector<T, ColMajor>(count, s_.k, matrix + i, along, x, c + i);
      finish_(c + i, count, with);
    }
  });
}

template <class T>
void Gemm<T>::run_dots(const T* a, const T* b, const T* bias, T* c, const Finish::Run& with) const {
  // `few` rows of one operand against the `many` of the other, which the threads share.
  const bool by_rows = s_.m > s_.n;
  const T *x = by_rows ? b : a, *others = by_rows ? a : b;
  const int64_t few = by_rows ? s_.n : s_.m, many = by_rows ? s_.m : s_.n;
  const int64_t x_row = by_rows ? s_.b_col : s_.a_row, others_row = by_rows ? s_.a_row : s_.b_col;
  const int64_t c_few = by_rows ? 1 : s_.n, c_many = by_rows ? s_.n : 1;
  const int64_t grain = threaded_ ? std::max<int64_t>(16, kSerialWork / 4 / (s_.k * few)) : many;
  parallel_for(many, grain, [&](int64_t begin, int64_t end, uint32_t) {
    T y[16];
    for (int64_t j = begin; j < end; j += 4) {
      const int64_t columns = std::min<int64_t>(4, end - j);
      for (int64_t i = 0; i < few; i += 4) {
        const int64_t rows = std::min<int64_t>(4, few - i);
        kDots<T>[rows - 1][columns - 1](s_.k, x + i * x_row, x_row, others + j * others_row,
                                        others_row, y);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t q = 0; q < columns; ++q) {
            const T start = bias ? bias[by_rows ? i + r : j + q] : T(0);
            c[(i + r) * c_few + (j + q) * c_many] = start + y[r * columns + q];
          }
      }
    }
    if (by_rows) return finish_(c + begin * few, (end - begin) * few, with);
    for (int64_t i = 0; i < few; ++i) finish_(c + i * s_.n + begin, end - begin, with);
  });
}

template <class T>
void Gemm<T>::run_outer(const T* a, const T* b, const T* bias, T* c,
                        const Finish::Run& with) const {
  const int64_t grain = threaded_ ? std::max<int64_t>(1, kSerialVectorWork / 4 / s_.n) : s_.m;
  parallel_for(s_.m, grain, [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t i = begin; i < end; i += 2)
      kOuter<T>[s_.k - 1][end - i > 1](s_, a + i * s_.a_row, b, bias, c + i * s_.n);
    finish_(c + begin * s_.n, (end - begin) * s_.n, with);
  });
}

// One thread's part of C: rows [i0, i1), columns [j0, j1).
template <class T>
void Gemm<T>::run_task(int64_t task, const T* a, const T* b, const T* bias, T* c, T* scratch,
                       const Finish::Run& with) const {
  const auto cut = [](int64_t n, int64_t unit, int64_t part, int64_t parts) {
    return std::min(n, ceil_div(n, unit) * part / parts * unit);
  };
  const int64_t row = task / n_tasks_, column = task % n_tasks_;
  const int64_t i0 = cut(s_.m, kTileRows<T>, row, m_tasks_),
                i1 = cut(s_.m, kTileRows<T>, row + 1, m_tasks_);
  const int64_t j0 = cut(s_.n, kTileColumns<T>, column, n_tasks_),
                j1 = cut(s_.n, kTileColumns<T>, column + 1, n_tasks_);
  if (i0 == i1 || j0 == j1) return;
  for (int64_t i = i0; i < i1; ++i)
    if (bias)
      std::copy(bias + j0, bias + j1, c + i * s_.n + j0);
    else
      std::fill(c + i * s_.n + j0, c + i * s_.n + j1, T(0));
  GemmShape part = s_;
  part.m = i1 - i0;
  part.n = j1 - j0;
  Blocking<T> blocking(m_block_, n_block_, k_block_, scratch);
  product_of<T>(s_)(part, a + i0 * s_.a_row, b + j0 * s_.b_col, c + i0 * s_.n + j0, s_.n, blocking,
                    T(1));
  for (int64_t i = i0; i < i1 && finish_; ++i) finish_(c + i * s_.n + j0, j1 - j0, with);
}

template <class T>
void add_product(int64_t m, int64_t n, int64_t k, T factor, MatrixView<const T> a,
                 MatrixView<const T> b, MatrixView<T> c) {
  if (m == 0 || n == 0 || k == 0) return;
  if (c.col != 1) return add_product(n, m, k, factor, b.turned(), a.turned(), c.turned());
  const GemmShape shape{m, n, k, a.row, a.col, b.row, b.col};
  Blocking<T> blocking(std::min(m, kBlockRows), std::min(n, kBlockColumns),
                       std::min(k, kBlockDepth), nullptr);
  product_of<T>(shape)(shape, a.data, b.data, c.data, c.row, blocking, factor);
}

template <class T>
void add_product(int64_t m, int64_t k, T factor, MatrixView<const T> a, const T* x, T* y) {
  if (m == 0 || k == 0) return;
  if (a.col == 1)
    product_with_vector<T, RowMajor>(m, k, a.data, a.row, x, y, factor);
  else
    product_with_vector<T, ColMajor>(m, k, a.data, a.col, x, y, factor);
}

template void add_product(int64_t, int64_t, int64_t, float, MatrixView<const float>,
                          MatrixView<const float>, MatrixView<float>);
template void add_product(int64_t, int64_t, int64_t, double, MatrixView<const double>,
                          MatrixView<const double>, MatrixView<double>);
template void add_product(int64_t, int64_t, float, MatrixView<const float>, const float*, float*);
template void add_product(int64_t, int64_t, double, MatrixView<const double>, const double*,
                          double*);
template class Gemm<float>;
template class Gemm<double>;

}  // namespace tenon::cpu
