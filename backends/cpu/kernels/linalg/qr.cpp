#include "kernels/linalg/decomposition.h"
#include "kernels/linalg/householder.h"
#include "kernels/linalg/reflectors.h"

namespace tenon::cpu {
namespace {

// From so many rows and columns on, reflectors are applied in blocks.
constexpr int64_t kBlockedQr = 48;

// x (m, n) = q r, with k columns of q and k rows of r: min(m, n) or m. Either may be null.
template <class T>
void decompose_qr(const T* x, int64_t m, int64_t n, int64_t k, T* q, T* r) {
  const int exponent = exponent_of(x, m * n);
  std::vector<T> a(x, x + m * n);
  scale(a.data(), m * n, -exponent);
  const bool blocked = std::min(m, n) >= kBlockedQr;
  Reflectors<T> reflectors(a.data(), m, blocked ? 0 : n, nullptr);
  const auto blocks = blocked ? blocked_qr(a.data(), m, n) : ReflectorBlocks<T>();
  if (r) {
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j)
        r[i * n + j] = j < i ? T(0) : a[static_cast<size_t>(i * n + j)];
    scale(r, k * n, exponent);
  }
  if (!q) return;
  std::fill(q, q + m * k, T(0));
  for (int64_t i = 0; i < std::min(m, k); ++i) q[i * k + i] = 1;
  if (blocked)
    apply_all(blocks, q, k, true);
  else
    reflectors.apply_all(q, k);
}

struct Qr {
  template <class T>
  static tn_plan* make(const Request& request, const DecompositionRequest& r) {
    return plan_matrices(request, r, 4 * volume(r.m, r.n, r.k()), false,
                         [r](const tn_run& run, int64_t i, uint32_t) {
                           const int64_t k = r.full ? r.m : r.k();
                           decompose_qr<T>(input_of<T>(run, 0, i * r.m * r.n), r.m, r.n, k,
                                           output_of<T>(run, 0, i * r.m * k),
                                           output_of<T>(run, 1, i * k * r.n));
                           return kFine;
                         });
  }
};
const sdk::Kernel qr({"qr"}, make_decomposition<Qr>);

}  // namespace
}  // namespace tenon::cpu
