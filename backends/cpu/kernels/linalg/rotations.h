// Rotations of neighbouring rows of a matrix, kept until there are enough of them to go over the
// matrix in strips that stay in the cache (Van Zee, van de Geijn and Quintana-Orti, "Restructuring
// the tridiagonal and bidiagonal QR algorithms for performance", 2014).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::cpu {

// How far apart rows of `width` elements lie that are rotated. A multiple of half a page would put
// a strip of all rows into a few sets of the cache, where it does not stay: that takes up to 1.7
// times as long.
template <class T>
constexpr int64_t stride_of_rows(int64_t width) {
  constexpr int64_t size = sizeof(T), half_a_page = 2048, line = 64;
  return width * size % half_a_page ? width : width + line / size;
}

template <class T>
class RotationQueue {
 public:
  // For rows of `width` elements, stride_of_rows() apart; null where nobody wants them to be
  // rotated.
  RotationQueue(T* rows, int64_t width);

  // What is added next turns rows (first, first + 1), then (first + 1, first + 2) and so on, or
  // (first, first - 1) and on where it goes `down`.
  void begin(int64_t first, bool down = false);
  // x = c x - s y and y = s x + c y
  void add(T c, T s) {
    if (rows_) factors_.push_back(c), factors_.push_back(s);
  }
  // All that has been added is done after this.
  void flush();

 private:
  struct Sweep {
    int64_t first, step;
    size_t begin;  // of its factors
    int64_t count;
  };
  // A sweep or two of `count` rotations each.
  struct Pass {
    int64_t first, step, count;
    size_t begin;
    bool twice;
  };

  void pad(const Sweep& sweep, int64_t first, int64_t count);
  void pair_up();
  template <int Lanes, class Part>
  void turn(int64_t column, Part part);

  T* const rows_;
  const int64_t width_, stride_;
  std::vector<Sweep> sweeps_;
  std::vector<Pass> passes_;
  std::vector<T> factors_, padded_;  // c and s of each rotation
};

extern template class RotationQueue<float>;
extern template class RotationQueue<double>;

}  // namespace tenon::cpu
