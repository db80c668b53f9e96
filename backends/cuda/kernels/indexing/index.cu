// Rows by index: embedding and index_select, and their gradients. A tensor is seen as (outer, size,
// inner), `size` being indexed. An index out of range is filed as a fault: its row becomes
// zeros, and its gradient is dropped.
#include <tenon/plugins/sdk/requests/indexing.h>

#include "device/block_reduce.h"
#include "kernels/indexing/add_rows.h"
#include "runtime/common.h"

namespace tenon::cuda {
namespace {

FaultSite site_of(const Request& request) {
  return request.op().starts_with("embedding") ? FaultSite::embedding : FaultSite::index_select;
}

struct Select {
  int64_t rows, size;    // rows of the output, over all of outer
  Divider units, count;  // of a row; indices
  Fault* fault;
  FaultSite site;
};

// y[o, i, :] = x[o, index[i], :] in units of U.
template <class U, class I>
__global__ void __launch_bounds__(kBlock) select_rows(Select s, const U* x, const I* index, U* y) {
  const int64_t row_units = s.units.divisor, n = s.rows * row_units;
#pragma unroll 2
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < n;
       at += int64_t{gridDim.x} * blockDim.x) {
    int64_t o = at;
    const int64_t column = split(o, s.units), i = split(o, s.count), k = index[i];
    U value{};
    if (k >= 0 && k < s.size)
      value = x[(o * s.size + k) * row_units + column];
    else if (column == 0)
      file_fault(s.fault, s.site, i, k, s.size);
    y[at] = value;
  }
}

template <class U, class I>
void start_select(const tn_run& run, const Select& s) {
  launch(run.stream, stride_blocks(*run.stream->device, s.rows * s.units.divisor), kBlock,
         select_rows<U, I>, s, static_cast<const U*>(run.inputs[0]),
         static_cast<const I*>(run.inputs[1]), static_cast<U*>(run.outputs[0]));
}

tn_plan* make_select(tn_device*, const Request& request) {
  const auto r = sdk::RowsRequest::from(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  const int64_t row_bytes = r.inner * static_cast<int64_t>(sdk::dtype_size(r.dtype));
  divider_of(row_bytes);
  const Select select{r.outer * r.count,   r.size,  {},
                      divider_of(r.count), nullptr, site_of(request)};
  return with_index(r.index, [&]<class I>(I) {
    return make_plan([=](const tn_run& run) {
      Select s = select;
      s.fault = run.stream->fault;
      // The widest unit that rows are made of.
      auto fits = [&](int64_t bytes) {
        s.units = divider_of(row_bytes / bytes);
        return row_bytes % bytes == 0 && aligned(run.inputs[0], static_cast<size_t>(bytes)) &&
               aligned(run.outputs[0], static_cast<size_t>(bytes));
      };
      if (fits(16)) return start_select<uint4, I>(run, s);
      if (fits(8)) return start_select<uint64_t, I>(run, s);
      if (fits(4)) return start_select<uint32_t, I>(run, s);
      if (fits(2)) return start_select<uint16_t, I>(run, s);
      fits(1);
      start_select<uint8_t, I>(run, s);
    });
  });
}

const sdk::Kernel selects({"embedding", "index_select"}, make_select);

template <class I>
__global__ void __launch_bounds__(kBlock)
    keys_of(const I* index, int64_t count, int64_t size, int64_t skip, uint32_t* keys, Fault* fault,
            FaultSite site) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t k = index[i];
    const bool inside = k >= 0 && k < size;
    if (!inside && k != skip) file_fault(fault, site, i, k, size);
    keys[i] = static_cast<uint32_t>(inside && k != skip ? k : size);
  }
}

tn_plan* make_add_rows(tn_device* device, const Request& request) {
  const auto r = sdk::RowsRequest::from(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  const AddRows add(*device, r.outer, r.size, r.count, r.inner);
  const FaultSite site = site_of(request);
  return with_float(r.dtype, [&]<class T>(T) {
    return with_index(r.index, [&]<class I>(I) {
      auto body = [=](const tn_run& run) {
        launch(run.stream, stride_blocks(*run.stream->device, r.count), kBlock, keys_of<I>,
               static_cast<const I*>(run.inputs[1]), r.count, r.size, r.skip,
               add.keys(run.workspace), run.stream->fault, site);
        add.run(run.stream, static_cast<const T*>(run.inputs[0]), static_cast<T*>(run.outputs[0]),
                run.workspace);
      };
      return make_plan(body, add.workspace_bytes());
    });
  });
}
const sdk::Kernel gradients({"embedding_backward", "index_select_backward"}, make_add_rows);

}  // namespace
}  // namespace tenon::cuda
