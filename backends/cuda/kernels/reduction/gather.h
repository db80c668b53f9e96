// What the threads of a reduction gather into, for any reducer (reduce.h).
#pragma once

namespace tenon::cuda {

// What one thread gathers into.
template <class R>
struct LocalOf {
  using type = typename R::Acc;
  __device__ static type init() { return R::init(); }
  __device__ static typename R::Acc settle(const type& local) { return local; }
};
template <class R>
  requires requires { typename R::Local; }
struct LocalOf<R> {
  using type = typename R::Local;
  __device__ static type init() { return {}; }
  __device__ static typename R::Acc settle(const type& local) { return R::settle(local); }
};

template <class R>
struct Combine {
  using Acc = typename R::Acc;
  __device__ Acc operator()(const Acc& a, const Acc& b) const { return R::combine(a, b); }
};

}  // namespace tenon::cuda
