// An arithmetic sequence (core/factories.h).
#include <cmath>
#include <string>

#include <tenon/core/base/number_text.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/creation/factory.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

// | `arange` | -> y | ; start, step | y[k] = start + k*step; `i` for integers |
const Op arange_op{{.name = "arange", .scalars = 2}};

std::string text_of(Number number) {
  return number.integral ? std::to_string(number.i) : number_text(number.f);
}

// Whether the step leads from `start` to `end`, which may be equal.
bool leads_to(Number start, Number end, Number step) {
  const bool whole = start.integral && end.integral;
  if (whole ? start.i == end.i : start.f == end.f) return true;
  return (step.f > 0) == (whole ? start.i < end.i : start.f < end.f);
}

// Returns how many numbers there are from `start` up to `end`, of which the step leads to it.
int64_t count_of_range(Number start, Number end, Number step) {
  constexpr int64_t most = 1'000'000'000'000'000;
  auto checked = [&](auto count) {
    if (count > most)
      throw ValueError(fmt::format(
          "arange: from start {} to end {} by step {} there are {} elements, more than can be "
          "addressed",
          text_of(start), text_of(end), text_of(step), number_text(static_cast<double>(count))));
    return static_cast<int64_t>(count);
  };
  if (!(start.integral && end.integral && step.integral))
    return checked(std::ceil((end.f - start.f) / step.f));
  // The distance of two int64 takes 65 bits.
  __extension__ using Wide = __int128;
  const Wide distance = Wide{end.i} - start.i;
  return checked(distance / step.i + (distance % step.i != 0));
}

}  // namespace

Tensor arange(Number start, Number end, Number step, const TensorOptions& options) {
  const DType dtype = dtype_of(options);
  if (step.f == 0 || !std::isfinite(step.f) || !std::isfinite(start.f) || !std::isfinite(end.f))
    throw ValueError(
        fmt::format("arange: start and end must be finite and step a finite number other than 0; "
                    "found {}, {}, {}",
                    text_of(start), text_of(end), text_of(step)));
  if (!leads_to(start, end, step))
    throw ValueError(fmt::format("arange: a step of {} never leads from {} to {}", text_of(step),
                                 text_of(start), text_of(end)));
  if (dtype == DType::boolean)
    throw DTypeError("arange: the dtype must be one of numbers, found bool");
  const int64_t count = count_of_range(start, end, step);
  if (count > 0 && start.integral && end.integral && step.integral) {
    require_held("arange", dtype, start);
    __extension__ using Wide = __int128;  // the last element lies between start and end
    require_held("arange", dtype, static_cast<int64_t>(start.i + Wide{count - 1} * step.i));
  }
  Tensor x = new_tensor("arange", count, options);
  Scalar scalars[] = {scalar_for(dtype, start), scalar_for(dtype, step)};
  run_into(x, {arange_op, {}, no_attrs, scalars});
  return finished(x, options);
}

}  // namespace tenon
