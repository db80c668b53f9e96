// Sums, products, extremes and variance over dimensions.
#include "kernels/reduction/reduce.h"
#include "kernels/reduction/reducers.h"

namespace tenon::cuda {

ReduceShape::ReduceShape(const tn_tensor_desc& x, const std::vector<int64_t>& dims)
    : sdk::ReduceShape(of(x, dims)) {
  for (int d = 0; d < reduced_rank && reduced_rank > 1; ++d)
    reduced_sizes[d] = divider_of(reduced[d].size);
  if (reduced_rank > 1 && count > INT32_MAX && outputs > 0)
    sdk::unsupported(
        "a reduction of {} elements to one that do not lie at equal distances; 2^31 - 1 "
        "is the most: reduce one dimension after the other",
        count);
}

namespace {

// Whether x can be read in packs of `pack` elements along its innermost dimension: a kept one if
// `columns` is true, otherwise a reduced one. Packs are whole and, if the tensor is aligned,
// aligned. Only a row that is one dimension may end with less than a pack.
bool packs_fit(const ReduceShape& s, bool columns, int pack) {
  for (int k = 0; k < 2; ++k) {
    const bool inner_list = (k == 1) == columns;
    const auto* list = k ? s.kept : s.reduced;
    const int rank = k ? s.kept_rank : s.reduced_rank;
    for (int d = 0; d < rank; ++d) {
      const bool innermost = inner_list && d == rank - 1,
                 may_have_rest = !columns && s.reduced_rank == 1;
      if (innermost ? list[d].x_stride != 1 || (list[d].size % pack && !may_have_rest)
                    : list[d].x_stride % pack)
        return false;
    }
  }
  return columns || s.reduced_rank > 0;
}

void split(ReduceArgs& a, int64_t parts, int64_t least, int pack) {
  parts = std::clamp<int64_t>(parts, 1, std::max<int64_t>(1, a.count / least));
  a.chunk = std::max<int64_t>(1, ceil_div(ceil_div(a.count, parts), pack) * pack);
  a.splits = std::max<int64_t>(1, ceil_div(a.count, a.chunk));
}

void plan_rows(const tn_device& device, ReduceArgs& a, int pack) {
  const int64_t loads = ceil_div(a.count, a.packs ? pack : 1);
  const int64_t fill = int64_t{device.multiprocessors} * 8;  // blocks that keep the device busy
  a.lanes = std::min(32u, power_of_two_from(ceil_div(loads, 4)));
  if (loads > 1024 || (loads > 128 && a.outputs < fill * 8)) a.lanes = a.block = kBlock;
  a.chunk = std::max<int64_t>(1, a.count);
  if (a.lanes == kBlock && a.outputs < fill / 2)
    split(a, fill / a.outputs, 4 * kBlock * pack, pack);
  a.grid = GroupShape{a.block, a.lanes}.grid(device, a.outputs * a.splits);
}

void plan_columns(const tn_device& device, ReduceArgs& a, int pack) {
  const int64_t size = a.kept[a.kept_rank - 1].size, wide = ceil_div(size, a.packs ? pack : 1);
  const int64_t fill = int64_t{device.multiprocessors} * 8;
  // A block has several threads for each column only if each of them has elements to fold.
  const unsigned below = std::min(power_of_two_from(ceil_div(a.count, 4)),
                                  kBlock / std::min(32u, power_of_two_from(wide)));
  a.lanes = kBlock / below;
  const int64_t blocks = a.outputs / size * ceil_div(wide, a.lanes);
  a.chunk = std::max<int64_t>(1, a.count);
  if (blocks < fill) split(a, ceil_div(fill, blocks), 16 * below, 1);
}

}  // namespace

ReduceArgs plan_reduction(const tn_device& device, const ReduceShape& shape, int load,
                          double parameter) {
  ReduceArgs a;
  static_cast<ReduceShape&>(a) = shape;
  a.parameter = parameter;
  const bool row_is_contiguous = a.reduced_rank > 0 && a.reduced[a.reduced_rank - 1].x_stride == 1;
  a.columns = !row_is_contiguous && a.kept_rank > 0 && a.kept[a.kept_rank - 1].x_stride == 1;
  a.packs = packs_fit(a, a.columns, load);
  a.columns ? plan_columns(device, a, load) : plan_rows(device, a, load);
  // With many outputs, one thread for each reads whole lines of memory. With few, the partial
  // results are many, and a group of threads folds those of each output.
  a.finish_lanes = a.outputs >= 4096 || a.splits <= 4 ? 1 : a.splits <= 128 ? 32 : kBlock;
  a.finish_grid = GroupShape{kBlock, a.finish_lanes}.grid(device, a.outputs);
  return a;
}

namespace {

template <template <class> class R>
tn_plan* make_number(tn_device* device, const Request& request) {
  return with_number(sdk::byte_for_bool(request.input(0).dtype),
                     [&]<class T>(T) { return reduction_plan<R<T>>(*device, request); });
}

template <class R>
tn_plan* make_bool(tn_device* device, const Request& request) {
  if (request.input(0).dtype != TN_BOOL) refuse_dtype(request.input(0).dtype);
  return reduction_plan<R>(*device, request);
}

double count_of(const Request& request) {
  return static_cast<double>(ReduceShape(request.input(0), sdk::reduced_dims(request)).count);
}

const sdk::Kernel sums({"sum"}, make_number<Sum>);
const sdk::Kernel products({"prod"}, make_number<Prod>);
const sdk::Kernel maxima({"amax"}, make_number<Amax>);
const sdk::Kernel minima({"amin"}, make_number<Amin>);
const sdk::Kernel any({"any"}, make_bool<Any>);
const sdk::Kernel all({"all"}, make_bool<All>);
const sdk::Kernel means({"mean"}, [](tn_device* device, const Request& request) {
  return with_float(request.input(0).dtype, [&]<class T>(T) {
    return reduction_plan<Sum<T>>(*device, request, count_of(request));
  });
});
const sdk::Kernel variances({"var"}, [](tn_device* device, const Request& request) {
  const double divisor =
      sdk::variance_divisor(count_of(request), sdk::variance_correction(request));
  return with_float(request.input(0).dtype,
                    [&]<class T>(T) { return reduction_plan<Var<T>>(*device, request, divisor); });
});

}  // namespace
}  // namespace tenon::cuda
