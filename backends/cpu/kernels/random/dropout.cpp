#include <cstring>

#include "kernels/random/random.h"

namespace tenon::cpu {
namespace {

template <class T>
void dropout(const tn_run& run, int64_t n) {
  double p = run.scalars[2].f;
  uint64_t threshold = sdk::dropout_threshold(p);
  if (threshold > 0xffffffffu) {  // p = 1
    std::memset(run.outputs[0], 0, static_cast<size_t>(n) * sizeof(T));
    std::memset(run.outputs[1], 0, static_cast<size_t>(n));
    return;
  }
  uint32_t least = static_cast<uint32_t>(threshold);
  T scale = sdk::dropout_scale<T>(p);
  auto* x = static_cast<const T*>(run.inputs[0]);
  auto* y = static_cast<T*>(run.outputs[0]);
  auto* mask = static_cast<uint8_t*>(run.outputs[1]);
  auto keep = [least](const uint32_t* words, uint8_t* kept) {
    for (int64_t i = 0; i < kBatch * 4; ++i) kept[i] = words[i] >= least;
  };
  generate_random<4, uint8_t>(run, n, keep, [=](int64_t i, int64_t count, const uint8_t* kept) {
    std::memcpy(mask + i, kept, static_cast<size_t>(count));
    const T* from = x + i;
    T* to = y + i;
    TN_INDEPENDENT
    for (int64_t k = 0; k < count; ++k) to[k] = from[k] * (static_cast<T>(kept[k]) * scale);
  });
}

tn_plan* make_dropout(tn_device*, const Request& request) {
  return with_float(sdk::DropoutRequest::from(request).dtype,
                    [&]<class T>(T) { return plan_random(request, dropout<T>, 1.5); });
}
const sdk::Kernel dropouts({"dropout"}, make_dropout);

template <class T>
void dropout_backward(const tn_run& run, int64_t n) {
  T scale = sdk::dropout_scale<T>(run.scalars[0].f);
  auto* g = static_cast<const T*>(run.inputs[0]);
  auto* mask = static_cast<const uint8_t*>(run.inputs[1]);
  auto* gx = static_cast<T*>(run.outputs[0]);
  parallel_for(n, kGrain, [=](int64_t begin, int64_t end, uint32_t) {
    TN_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) gx[i] = g[i] * (static_cast<T>(mask[i]) * scale);
  });
}

tn_plan* make_dropout_backward(tn_device*, const Request& request) {
  return with_float(sdk::DropoutRequest::from(request).dtype,
                    [&]<class T>(T) { return plan_random(request, dropout_backward<T>, 0.3); });
}
const sdk::Kernel dropout_backwards({"dropout_backward"}, make_dropout_backward);

}  // namespace
}  // namespace tenon::cpu
