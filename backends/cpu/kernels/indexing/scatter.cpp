// Writing and combining at indices.
#include "kernels/indexing/scatter.h"

#include <tenon/plugins/sdk/scatter.h>

namespace tenon::cpu {
namespace {

using Reduce = sdk::ScatterReduce;

// What a place has before the first is put there.
template <class Put>
struct FirstOf {
  template <class T>
  static T put(T, T) {
    return Put::kFirst;
  }
};

struct RowKernels {
  ScatterWalk::PutRow reset, put;
};
template <template <class> class Put, class T, class I>
constexpr RowKernels kRowKernels{put_row<FirstOf<Put<T>>, T, I>, put_row<Put<T>, T, I>};

template <class T, class I>
RowKernels rows_of(Reduce reduce) {
  switch (reduce) {
    case Reduce::sum:
      return kRowKernels<sdk::AddTo, T, I>;
    case Reduce::prod:
      return kRowKernels<sdk::MultiplyTo, T, I>;
    case Reduce::amax:
      return kRowKernels<sdk::LargestTo, T, I>;
    default:
      return kRowKernels<sdk::SmallestTo, T, I>;
  }
}

tn_plan* make_scatter(tn_device*, const Request& request) {
  const auto r = sdk::ScatterRequest::from(request);
  const int64_t elements = sdk::numel(request.output(0)), count = sdk::numel(request.input(1));
  const int64_t bytes = elements * static_cast<int64_t>(sdk::dtype_size(r.dtype));
  if (elements == 0 && count == 0) return empty_plan();
  if (count == 0)
    return sdk::make_plan([bytes](const tn_run& run) {
      if (run.outputs[0] != run.inputs[0]) copy_bytes(run.outputs[0], run.inputs[0], bytes);
    });
  const ScatterWalk walk(request, 2, r.seen, r.dim, r.size, r.stride);
  const auto plan = [&](ScatterWalk::PutRow reset, ScatterWalk::PutRow put) {
    return sdk::make_plan([=](const tn_run& run) { walk(run, run.inputs[0], reset, put); },
                          {0, 30 + static_cast<uint64_t>(elements / 4 + 3 * count)});
  };
  return with_index(r.index, [&]<class I>(I) {
    if (r.reduce == Reduce::assign)
      return with_width(r.dtype,
                        [&]<class T>(T) { return plan(nullptr, put_row<sdk::AssignTo<T>, T, I>); });
    return with_number(sdk::byte_for_bool(r.dtype), [&]<class T>(T) {
      const RowKernels rows = rows_of<T, I>(r.reduce);
      return plan(r.include_self ? nullptr : rows.reset, rows.put);
    });
  });
}
const sdk::Kernel scatters({"scatter", "scatter_reduce"}, make_scatter);

}  // namespace
}  // namespace tenon::cpu
