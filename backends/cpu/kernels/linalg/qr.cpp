#include "kernels/linalg/orthogonal.h"
#include "kernels/linalg/reflectors.h"

namespace tenon::cpu {

template <class T>
void decompose_qr(const T* x, int64_t m, int64_t n, int64_t k, T* q, T* r) {
  const int exponent = exponent_of(x, m * n);
  std::vector<T> a(x, x + m * n);
  scale(a.data(), m * n, -exponent);
  Reflectors<T> reflectors(a.data(), m, n, nullptr);
  if (r) {
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j)
        r[i * n + j] = j < i ? T(0) : a[static_cast<size_t>(i * n + j)];
    scale(r, k * n, exponent);
  }
  if (!q) return;
  std::fill(q, q + m * k, T(0));
  for (int64_t i = 0; i < std::min(m, k); ++i) q[i * k + i] = 1;
  reflectors.apply_all(q, k);
}

template void decompose_qr(const float*, int64_t, int64_t, int64_t, float*, float*);
template void decompose_qr(const double*, int64_t, int64_t, int64_t, double*, double*);

}  // namespace tenon::cpu
