#include "kernels/linalg/gemm.h"

#include <array>

#include "kernels/linalg/pack.h"
#include "runtime/common.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

// The tile of C that lives in registers: kRows x (2 vectors). 32 registers allow 14 rows, 16
// registers 6.
#if defined(__AVX512F__)
constexpr int kRows = 14;
#else
constexpr int kRows = 6;
#endif
template <class T>
constexpr int64_t kColumns = 2 * kWidth<T>;

// A panel of B (kDepth x kColumns) stays in the L1 cache; a block of A and one of B stay in L2.
constexpr int64_t kDepth = 256;
constexpr int64_t kBlockRows = 168;
template <class T>
constexpr int64_t kBlockColumns = 2048 / sizeof(T);
// Rows or columns up to which dot products along k beat panels, and the vectors of k that more than
// two of them need.
constexpr int64_t kFewDots = 12, kDeepDots = 10;
// Multiply-adds below which waking another thread costs more than it saves.
constexpr int64_t kSerialWork = 1 << 20;

// The size of the fewest equal parts of n that are not much larger than `most`.
constexpr int64_t balance(int64_t n, int64_t most) {
  int64_t parts = std::max<int64_t>(1, ceil_div(n, most + most / 4));
  return std::max<int64_t>(1, ceil_div(n, parts));
}

// `Rows` x (`Vectors` vectors) of C from k columns of A, `a_step` apart with contiguous rows, and k
// rows of B, `b_step` apart. Only `columns` of C are written.
template <class T, int Rows, int Vectors>
void micro(int64_t k, const T* a, int64_t a_step, const T* b, int64_t b_step, T* c, int64_t c_step,
           int64_t columns, const T* bias, bool accumulate) {
  constexpr int64_t width = kWidth<T>;
  Vec<T> acc[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) acc[i][v] = Vec<T>{};
  for (int64_t p = 0; p < k; ++p, a += a_step, b += b_step) {
    Vec<T> row[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) row[v] = load(b + v * width);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      Vec<T> x = splat(a[i]);
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) acc[i][v] += x * row[v];
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < Vectors; ++v) {
    int64_t left = columns - v * width;
    if (left >= width) {
      Vec<T> start = bias ? load(bias + v * width) : Vec<T>{};
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        T* to = c + i * c_step + v * width;
        store(to, acc[i][v] + (accumulate ? load(to) : start));
      }
    } else if (left > 0) {
      Vec<T> start = bias ? load_part(bias + v * width, left) : Vec<T>{};
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        T* to = c + i * c_step + v * width;
        store_part(to, acc[i][v] + (accumulate ? load_part(to, left) : start), left);
      }
    }
  }
}

template <class T>
using Micro = void (*)(int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t, int64_t,
                       const T*, bool);

template <class T, int... I>
constexpr std::array<std::array<Micro<T>, 2>, kRows> micro_table(std::integer_sequence<int, I...>) {
  return {{{micro<T, I + 1, 1>, micro<T, I + 1, 2>}...}};
}
template <class T>
constexpr auto kMicro = micro_table<T>(std::make_integer_sequence<int, kRows>());

// Dot products of Rows rows with Columns others, all contiguous along k: lanes run over k. y is
// row-major, Columns wide.
template <class T, int Rows, int Columns>
void dots(int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_row, T* y) {
  constexpr int64_t width = kWidth<T>;
  constexpr int total = Rows * Columns;
  Vec<T> acc[total];
#pragma GCC unroll 16
  for (int i = 0; i < total; ++i) acc[i] = Vec<T>{};
  auto add = [&](int64_t p, auto part) {
    Vec<T> x[Rows];
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) x[i] = load(a + i * a_row + p, part);
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) {
      Vec<T> v = load(b + j * b_row + p, part);
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) acc[i * Columns + j] += x[i] * v;
    }
  };
  for_lanes<T>(k, add);
  if constexpr (total <= width && (total & (total - 1)) == 0) {
    // Halving the vectors instead of each one's lanes: after each step a lane's low bits say which
    // vector it came from.
#pragma GCC unroll 4
    for (int half = total / 2; half > 0; half /= 2)
#pragma GCC unroll 8
      for (int i = 0; i < half; ++i)
        acc[i] = zip_low(acc[i], acc[i + half]) + zip_high(acc[i], acc[i + half]);
    T lanes[width];
    store(lanes, acc[0]);
    for (int i = 0; i < total; ++i) {
      y[i] = lanes[i];
      for (int64_t j = i + total; j < width; j += total) y[i] += lanes[j];
    }
  } else {
    for (int i = 0; i < total; ++i) y[i] = sum_lanes<T>(acc[i]);
  }
}

template <class T>
using Dots = void (*)(int64_t, const T*, int64_t, const T*, int64_t, T*);
template <class T>
constexpr Dots<T> kDots[4][4] = {{dots<T, 1, 1>, dots<T, 1, 2>, dots<T, 1, 3>, dots<T, 1, 4>},
                                 {dots<T, 2, 1>, dots<T, 2, 2>, dots<T, 2, 3>, dots<T, 2, 4>},
                                 {dots<T, 3, 1>, dots<T, 3, 2>, dots<T, 3, 3>, dots<T, 3, 4>},
                                 {dots<T, 4, 1>, dots<T, 4, 2>, dots<T, 4, 3>, dots<T, 4, 4>}};

}  // namespace

template <class T>
Gemm<T>::Gemm(const GemmShape& shape, uint32_t threads) : s_(shape) {
  if (s_.m == 0 || s_.n == 0) {
    way_ = Way::kNothing;
    return;
  }
  bool thread = threads > 1 && s_.work() > kSerialWork;
  int64_t few = std::min(s_.m, s_.n);
  if (s_.a_col == 1 && s_.b_row == 1 && few <= kFewDots &&
      s_.k >= kWidth<T> * (few <= 2 ? 1 : kDeepDots)) {
    way_ = Way::kDot;
    grain_ = thread ? std::max<int64_t>(16, kSerialWork / 4 / (s_.k * few)) : std::max(s_.m, s_.n);
  } else {
    plan_blocks(thread ? threads : 1);
  }
}

template <class T>
void Gemm<T>::plan_blocks(uint32_t threads) {
  // One row: any stride along k is as good as packed. A few column panels do not repay the packing
  // of contiguous columns.
  if (s_.m == 1) s_.a_row = 1;
  pack_a_ = s_.m > 1 && (s_.a_row != 1 || s_.n > 4 * kColumns<T>);
  pack_b_ = s_.b_col != 1 || s_.m > 3 * kRows;

  // Threads share nothing: a panel that another core has packed costs more to fetch than to pack
  // once more. The grid with the least to pack a thread wins.
  double least = 0;
  for (int64_t m_tasks = 1; m_tasks <= threads; ++m_tasks) {
    int64_t n_tasks = threads / m_tasks;
    if (m_tasks > ceil_div(s_.m, kRows) || n_tasks > ceil_div(s_.n, kColumns<T>)) continue;
    double rows = static_cast<double>(ceil_div(s_.m, m_tasks)),
           columns = static_cast<double>(ceil_div(s_.n, n_tasks));
    double cost = rows * columns + 12 * (rows * pack_a_ + columns * pack_b_);
    if (least != 0 && cost >= least) continue;
    least = cost;
    m_tasks_ = m_tasks;
    n_tasks_ = n_tasks;
  }
  int64_t rows = ceil_div(s_.m, m_tasks_),
          columns = (ceil_div(ceil_div(s_.n, kColumns<T>), n_tasks_)) * kColumns<T>;
  k_block_ = balance(s_.k, kDepth);
  m_block_ = balance(rows, kBlockRows);
  n_block_ = std::min(columns, kBlockColumns<T>);

  // A slot packs a block of A, with room for the rubbish behind it, and one of B, or only the
  // ragged last panel of it.
  constexpr int64_t line = 64 / sizeof(T);
  a_elements_ = pack_a_ ? ceil_div(m_block_ * k_block_ + kColumns<T>, line) * line : 0;
  slot_elements_ = a_elements_ + k_block_ * (pack_b_ ? n_block_ : kColumns<T>);
  workspace_bytes_ = static_cast<uint64_t>(m_tasks_ * n_tasks_ * slot_elements_) * sizeof(T);
}

template <class T>
uint64_t Gemm<T>::cost_ns() const {
  // About 75 multiply-adds a nanosecond with AVX-512 floats; operands come at about 100 bytes.
  double rate = 75.0 * kVectorBytes / 64 * 4 / sizeof(T);
  double work = s_.work() / rate;
  double bytes = static_cast<double>(s_.m * s_.k + s_.k * s_.n + s_.m * s_.n) * sizeof(T) / 100;
  return 50 + static_cast<uint64_t>(work + bytes);
}

template <class T>
void Gemm<T>::run(const T* a, const T* b, const T* bias, T* c, void* workspace) const {
  switch (way_) {
    case Way::kNothing:
      return;
    case Way::kDot:
      return run_dots(a, b, bias, c);
    case Way::kBlocked:
      return parallel_for(m_tasks_ * n_tasks_, 1, [&](int64_t begin, int64_t end, uint32_t) {
        // By task, not by slot: there are as many tasks as shares of the workspace.
        for (int64_t task = begin; task < end; ++task)
          run_task(task, a, b, bias, c, static_cast<T*>(workspace) + task * slot_elements_);
      });
  }
}

template <class T>
void Gemm<T>::run_dots(const T* a, const T* b, const T* bias, T* c) const {
  // `few` rows of one operand against the `many` of the other, which the threads share.
  bool by_rows = s_.m > s_.n;
  const T *x = by_rows ? b : a, *others = by_rows ? a : b;
  int64_t few = by_rows ? s_.n : s_.m, many = by_rows ? s_.m : s_.n;
  int64_t x_row = by_rows ? s_.b_col : s_.a_row, others_row = by_rows ? s_.a_row : s_.b_col;
  int64_t c_few = by_rows ? 1 : s_.c_row, c_many = by_rows ? s_.c_row : 1;
  parallel_for(many, grain_, [&](int64_t begin, int64_t end, uint32_t) {
    T y[16];
    for (int64_t j = begin; j < end;) {
      int64_t columns = few == 1 && end - j >= 8 ? 8 : std::min<int64_t>(4, end - j);
      for (int64_t i = 0; i < few; i += 4) {
        int64_t rows = std::min<int64_t>(4, few - i);
        auto kernel = columns == 8 ? dots<T, 1, 8> : kDots<T>[rows - 1][columns - 1];
        kernel(s_.k, x + i * x_row, x_row, others + j * others_row, others_row, y);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t q = 0; q < columns; ++q) {
            T start = bias ? bias[by_rows ? i + r : j + q] : T(0);
            c[(i + r) * c_few + (j + q) * c_many] = start + y[r * columns + q];
          }
      }
      j += columns;
    }
  });
}

// One thread's part of C: rows [i0, i1), columns [j0, j1).
template <class T>
void Gemm<T>::run_task(int64_t task, const T* a, const T* b, const T* bias, T* c,
                       T* scratch) const {
  constexpr int64_t columns = kColumns<T>;
  int64_t panels = ceil_div(s_.n, columns), row_task = task / n_tasks_,
          column_task = task % n_tasks_;
  int64_t i0 = row_task * s_.m / m_tasks_, i1 = (row_task + 1) * s_.m / m_tasks_;
  int64_t j0 = column_task * panels / n_tasks_ * columns,
          j1 = std::min(s_.n, (column_task + 1) * panels / n_tasks_ * columns);
  T* packed_b = scratch + a_elements_;
  for (int64_t j = j0; j < j1; j += n_block_)
    // k = 0 still goes through once, to write the bias or zeros.
    for (int64_t p = 0; p == 0 || p < s_.k; p += k_block_) {
      int64_t wide = std::min(n_block_, j1 - j), kc = std::min(k_block_, s_.k - p);
      if (pack_b_)
        for (int64_t q = 0; q < wide; q += columns)
          pack(b + p * s_.b_row + (j + q) * s_.b_col, s_.b_col, s_.b_row,
               std::min(columns, wide - q), kc, packed_b + q * kc, columns);
      for (int64_t i = i0; i < i1; i += m_block_)
        run_block(i, std::min(m_block_, i1 - i), j, wide, p, kc, a, b, p == 0 ? bias : nullptr, c,
                  scratch);
    }
}

// `rows` x `wide` of C at (i, j), from kc columns of A and rows of B at p.
template <class T>
void Gemm<T>::run_block(int64_t i, int64_t rows, int64_t j, int64_t wide, int64_t p, int64_t kc,
                        const T* a, const T* b, const T* bias, T* c, T* scratch) const {
  constexpr int64_t columns = kColumns<T>;
  T* packed_b = scratch + a_elements_;
  int64_t tiles = ceil_div(rows, kRows);
  if (pack_a_)
    for (int64_t t = 0; t < tiles; ++t) {
      int64_t first = t * rows / tiles, high = (t + 1) * rows / tiles - first;
      pack(a + (i + first) * s_.a_row + p * s_.a_col, s_.a_row, s_.a_col, high, kc,
           scratch + first * kc, high);
    }
  for (int64_t q = 0; q < wide; q += columns) {
    int64_t left = std::min(columns, wide - q);
    const T* panel = b + p * s_.b_row + j + q;
    int64_t panel_step = s_.b_row;
    if (pack_b_ || left < columns) {
      if (!pack_b_) pack(panel, int64_t{1}, s_.b_row, left, kc, packed_b, columns);
      panel = pack_b_ ? packed_b + q * kc : packed_b;
      panel_step = columns;
    }
    for (int64_t t = 0; t < tiles; ++t) {
      int64_t first = t * rows / tiles, high = (t + 1) * rows / tiles - first;
      const T* tile = pack_a_ ? scratch + first * kc : a + i + first + p * s_.a_col;
      kMicro<T>[static_cast<size_t>(high - 1)][left > kWidth<T>](
          kc, tile, pack_a_ ? high : s_.a_col, panel, panel_step,
          c + (i + first) * s_.c_row + j + q, s_.c_row, left, bias ? bias + j + q : nullptr, p > 0);
    }
  }
}

template class Gemm<float>;
template class Gemm<double>;

}  // namespace tenon::cpu
