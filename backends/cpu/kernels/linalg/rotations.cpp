#include "kernels/linalg/rotations.h"

#include "simd/packet.h"

namespace tenon::cpu {
namespace {

// Vectors of a row that are turned together, and about how many sweeps wait for each other.
constexpr int kStrip = 4;
constexpr int64_t kSweeps = 16;

// A sweep of `count` rotations over `Lanes` vectors of each row: the second row of a rotation,
// which is the first of the next, stays in registers.
template <class T, int Lanes, class Part>
void turn_strip(T* row, int64_t step, const T* factors, int64_t count, Part part) {
  Vec<T> x[Lanes];
#pragma GCC unroll 8
  for (int l = 0; l < Lanes; ++l) x[l] = load(row + l * kWidth<T>, part);
  for (int64_t k = 0; k < count; ++k) {
    const Vec<T> c = splat(factors[2 * k]), s = splat(factors[2 * k + 1]);
    T* const next = row + step;
#pragma GCC unroll 8
    for (int l = 0; l < Lanes; ++l) {
      const Vec<T> y = load(next + l * kWidth<T>, part);
      store(row + l * kWidth<T>, c * x[l] - s * y, part);
      x[l] = s * x[l] + c * y;
    }
    row = next;
  }
#pragma GCC unroll 8
  for (int l = 0; l < Lanes; ++l) store(row + l * kWidth<T>, x[l], part);
}

// Does two sweeps in the same direction at once. `second` follows one row behind the first sweep,
// so that each row is read and written once.
template <class T, int Lanes, class Part>
void turn_strip_twice(T* row, int64_t step, const T* first, const T* second, int64_t count,
                      Part part) {
  constexpr int64_t w = kWidth<T>;
  Vec<T> behind[Lanes], ahead[Lanes];
  const auto turn = [](T c, T s, Vec<T>& x, Vec<T>& y) {
    const Vec<T> before = x;
    x = splat(c) * x - splat(s) * y;
    y = splat(s) * before + splat(c) * y;
  };
#pragma GCC unroll 8
  for (int l = 0; l < Lanes; ++l) {
    behind[l] = load(row + l * w, part), ahead[l] = load(row + step + l * w, part);
    turn(first[0], first[1], behind[l], ahead[l]);
  }
  for (int64_t k = 1; k < count; ++k) {
    const T c = first[2 * k], s = first[2 * k + 1], c2 = second[2 * k - 2], s2 = second[2 * k - 1];
#pragma GCC unroll 8
    for (int l = 0; l < Lanes; ++l) {
      Vec<T> middle = ahead[l];
      ahead[l] = load(row + 2 * step + l * w, part);
      turn(c, s, middle, ahead[l]);
      turn(c2, s2, behind[l], middle);
      store(row + l * w, behind[l], part);
      behind[l] = middle;
    }
    row += step;
  }
#pragma GCC unroll 8
  for (int l = 0; l < Lanes; ++l) {
    turn(second[2 * count - 2], second[2 * count - 1], behind[l], ahead[l]);
    store(row + l * w, behind[l], part), store(row + step + l * w, ahead[l], part);
  }
}

}  // namespace

template <class T>
RotationQueue<T>::RotationQueue(T* rows, int64_t width)
    : rows_(rows), width_(width), stride_(stride_of_rows<T>(width)) {
  if (!rows) return;
  factors_.reserve(static_cast<size_t>(2 * (kSweeps + 1) * width));
  padded_.reserve(factors_.capacity());
}

template <class T>
void RotationQueue<T>::begin(int64_t first, bool down) {
  if (!rows_) return;
  if (factors_.size() > static_cast<size_t>(2 * kSweeps * width_)) flush();
  sweeps_.push_back({first, down ? -1 : 1, factors_.size(), 0});
}

// Appends to padded_ the rotations of `sweep` as some of `count` that begin at row `first`, of
// which the others change nothing.
template <class T>
void RotationQueue<T>::pad(const Sweep& sweep, int64_t first, int64_t count) {
  const int64_t before = (sweep.first - first) * sweep.step;
  const auto add_none = [&](int64_t n) {
    for (int64_t i = 0; i < n; ++i) padded_.push_back(1), padded_.push_back(0);
  };
  add_none(before);
  const auto from = factors_.begin() + static_cast<int64_t>(sweep.begin);
  padded_.insert(padded_.end(), from, from + 2 * sweep.count);
  add_none(count - before - sweep.count);
}

// Does two sweeps in the same direction over about the same rows in one pass.
template <class T>
void RotationQueue<T>::pair_up() {
  constexpr int64_t kMaxPadding = 16;
  for (size_t i = 0; i < sweeps_.size(); ++i) {
    const size_t end = i + 1 < sweeps_.size() ? sweeps_[i + 1].begin : factors_.size();
    sweeps_[i].count = static_cast<int64_t>(end - sweeps_[i].begin) / 2;
  }
  std::erase_if(sweeps_, [](const Sweep& s) { return s.count == 0; });
  for (size_t i = 0; i < sweeps_.size(); ++i) {
    Pass pass{sweeps_[i].first, sweeps_[i].step, sweeps_[i].count, padded_.size(), false};
    if (i + 1 < sweeps_.size() && sweeps_[i + 1].step == pass.step) {
      const Sweep& next = sweeps_[i + 1];
      const int64_t later = (next.first - pass.first) * pass.step,
                    front = std::min(later, int64_t{0});
      const int64_t count = std::max(pass.count, later + next.count) - front;
      if (count <= std::max(pass.count, next.count) + kMaxPadding) {
        pass.first += front * pass.step, pass.count = count, pass.twice = true;
      }
    }
    pad(sweeps_[i], pass.first, pass.count);
    if (pass.twice) pad(sweeps_[++i], pass.first, pass.count);
    passes_.push_back(pass);
  }
}

template <class T>
template <int Lanes, class Part>
void RotationQueue<T>::turn(int64_t column, Part part) {
  for (const Pass& p : passes_) {
    T* const row = rows_ + p.first * stride_ + column;
    const T* const factors = padded_.data() + p.begin;
    if (p.twice)
      turn_strip_twice<T, Lanes>(row, p.step * stride_, factors, factors + 2 * p.count, p.count,
                                 part);
    else
      turn_strip<T, Lanes>(row, p.step * stride_, factors, p.count, part);
  }
}

template <class T>
void RotationQueue<T>::flush() {
  pair_up();
  int64_t column = 0;
  for (; column + kStrip * kWidth<T> <= width_; column += kStrip * kWidth<T>)
    turn<kStrip>(column, Full{});
  for (; column + kWidth<T> <= width_; column += kWidth<T>) turn<1>(column, Full{});
  if (column < width_) turn<1>(column, Rest{width_ - column});
  sweeps_.clear(), factors_.clear(), passes_.clear(), padded_.clear();
}

template class RotationQueue<float>;
template class RotationQueue<double>;

}  // namespace tenon::cpu
