// Copies that change the dtype.
#include "kernels/shape/copy.h"

namespace tenon::cuda {
namespace {

template <class To>
struct Cast {
  template <class C>
  __device__ To operator()(C x) const {
    return cast<To>(x);
  }
};

template <class From, class To>
constexpr UnaryStart kStart = [](const Loop<2>& loop, const tn_run& run) {
  loop.run<Cast<To>, To>(run.stream, Cast<To>{}, run.outputs[0], operand<From>(run.inputs[0]));
};

template <class From>
constexpr ByDtype<UnaryStart> kFrom = {.f32 = kStart<From, float>,
                                       .f64 = kStart<From, double>,
                                       .f16 = kStart<From, Half>,
                                       .bf16 = kStart<From, BFloat>,
                                       .i64 = kStart<From, int64_t>,
                                       .i32 = kStart<From, int32_t>,
                                       .u8 = kStart<From, uint8_t>,
                                       .boolean = kStart<From, Bool>};

const ByDtype<UnaryStart>& from(tn_dtype dtype) {
  switch (dtype) {
    case TN_F32:
      return kFrom<float>;
    case TN_F64:
      return kFrom<double>;
    case TN_F16:
      return kFrom<Half>;
    case TN_BF16:
      return kFrom<BFloat>;
    case TN_I64:
      return kFrom<int64_t>;
    case TN_I32:
      return kFrom<int32_t>;
    default:
      return kFrom<uint8_t>;
  }
}

}  // namespace

tn_plan* make_cast_plan(const Request& request) {
  auto &x = request.input(0), &y = request.output(0);
  Nest nest({&y, &x});
  nest.sort();
  return make_plan([loop = Loop<2>(nest), start = from(x.dtype).pick(y.dtype)](const tn_run& run) {
    start(loop, run);
  });
}

}  // namespace tenon::cuda
