// gather and its gradient: each index takes one element. An index out of range is filed as a fault:
// its element becomes zero, and its gradient is dropped.
#include <tenon/plugins/sdk/requests/indexing.h>

#include "device/block_reduce.h"
#include "kernels/indexing/add_rows.h"
#include "runtime/common.h"

namespace tenon::cuda {
namespace {

struct Along {
  int64_t size, stride;  // of the indexed dimension
  Fault* fault;
};

// The layout has three operands: the output, whose offset is also the position because it is
// contiguous, the index, and x.
template <class T, class I>
__global__ void __launch_bounds__(kBlock)
    gather(const __grid_constant__ Layout<3> layout, Along along, int64_t base, const T* x,
           const I* index, T* y) {
  for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < layout.numel;
       at += gridDim.x * blockDim.x) {
    uint32_t offset[1][3];
    layout.offsets(at, 0, offset);
    const int64_t k = index[offset[0][1]];
    T value = 0;
    if (k >= 0 && k < along.size)
      value = x[offset[0][2] + k * along.stride];
    else
      file_fault(along.fault, FaultSite::gather, base + offset[0][0], k, along.size);
    y[offset[0][0]] = value;
  }
}

tn_plan* make_gather(tn_device*, const Request& request) {
  const auto r = sdk::GatherRequest::from(request);
  auto& y = request.output(0);
  if (sdk::numel(y) == 0) return empty_plan();
  const auto pieces = Nest({&y, &request.input(1), &r.seen}).pieces();
  return with_width(y.dtype, [&]<class T>(T) {
    return with_index(r.index, [&]<class I>(I) {
      return make_plan([pieces, size = r.size, stride = r.stride](const tn_run& run) {
        for (auto& piece : pieces)
          launch(run.stream, stride_blocks(*run.stream->device, piece.numel), kBlock, gather<T, I>,
                 piece.layout<3>(), Along{size, stride, run.stream->fault}, piece.base[0],
                 static_cast<const T*>(run.inputs[0]) + piece.base[2],
                 static_cast<const I*>(run.inputs[1]) + piece.base[1],
                 static_cast<T*>(run.outputs[0]) + piece.base[0]);
      });
    });
  });
}
const sdk::Kernel gathers({"gather"}, make_gather);

// ---- The gradient

// Two elements are added to the same place only if they are in the same line along `dim`. If there
// are many lines, or lines are short, one thread walks along each of them. Otherwise AddRows adds
// the elements, with each place of gx as a row of one element.

constexpr int64_t kShortLine = 32;

// gx is zero before; index and g are (outer, count, inner), gx is (outer, size, inner).
template <class T, class I>
__global__ void __launch_bounds__(kBlock)
    add_down_lines(int64_t outer, int64_t count, int64_t inner, Along along, const T* g,
                   const I* index, T* gx) {
  for (int64_t line = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; line < outer * inner;
       line += int64_t{gridDim.x} * blockDim.x) {
    const int64_t o = divide(line, inner), column = line - o * inner;
    T* to = gx + o * along.size * inner + column;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = (o * count + i) * inner + column, k = index[at];
      if (k >= 0 && k < along.size)
        to[k * inner] += g[at];
      else
        file_fault(along.fault, FaultSite::gather, at, k, along.size);
    }
  }
}

template <class I>
__global__ void __launch_bounds__(kBlock)
    places_of(const __grid_constant__ Layout<2> layout, Along along, const I* index,
              uint32_t* places, uint32_t none) {
  for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < layout.numel;
       at += gridDim.x * blockDim.x) {
    uint32_t offset[1][2];
    layout.offsets(at, 0, offset);
    const int64_t k = index[at];
    const bool inside = k >= 0 && k < along.size;
    if (!inside) file_fault(along.fault, FaultSite::gather, at, k, along.size);
    places[at] = inside ? static_cast<uint32_t>(offset[0][1] + k * along.stride) : none;
  }
}

template <class T, class I>
tn_plan* plan_lines(const sdk::GatherRequest& r, const Lines& lines, int64_t count) {
  return make_plan([=, outer = lines.outer, size = r.size, inner = lines.inner](const tn_run& run) {
    auto* to = static_cast<T*>(run.outputs[0]);
    check(cudaMemsetAsync(to, 0, static_cast<size_t>(outer * size * inner) * sizeof(T),
                          run.stream->handle),
          "cudaMemsetAsync");
    launch(run.stream, stride_blocks(*run.stream->device, outer * inner), kBlock,
           add_down_lines<T, I>, outer, count, inner, Along{size, inner, run.stream->fault},
           static_cast<const T*>(run.inputs[0]), static_cast<const I*>(run.inputs[1]), to);
  });
}

template <class T, class I>
tn_plan* plan_places(const tn_device& device, const sdk::GatherRequest& r,
                     const tn_tensor_desc& index, int64_t elements) {
  const int64_t count = sdk::numel(index);
  const AddRows add(device, 1, elements, count, 1);
  const auto pieces = Nest({&index, &r.seen}).pieces();
  if (pieces.size() > 1) sdk::unsupported("2^31 elements and more in few lines");
  auto body = [=, size = r.size, stride = r.stride](const tn_run& run) {
    for (auto& piece : pieces)
      launch(run.stream, stride_blocks(*run.stream->device, count), kBlock, places_of<I>,
             piece.layout<2>(), Along{size, stride, run.stream->fault},
             static_cast<const I*>(run.inputs[1]), add.keys(run.workspace), add.none());
    add.run(run.stream, static_cast<const T*>(run.inputs[0]), static_cast<T*>(run.outputs[0]),
            run.workspace);
  };
  return make_plan(body, add.workspace_bytes());
}

tn_plan* make_gather_backward(tn_device* device, const Request& request) {
  const auto r = sdk::GatherRequest::from(request);
  auto &index = request.input(1), &gx = request.output(0);
  for (auto* d : {&request.input(0), &index}) require_contiguous(*d);
  const int64_t elements = sdk::numel(gx);
  if (elements == 0) return empty_plan();
  tn_tensor_desc like = gx;  // except in `dim`
  like.shape[r.dim] = index.shape[r.dim];
  const bool lines = sdk::same_shape(like, index) &&
                     (elements / r.size >= kManyLines || index.shape[r.dim] <= kShortLine);
  return with_float(r.dtype, [&]<class T>(T) {
    return with_index(r.index, [&]<class I>(I) {
      return lines ? plan_lines<T, I>(r, Lines::of(gx, r.dim), index.shape[r.dim])
                   : plan_places<T, I>(*device, r, index, elements);
    });
  });
}
const sdk::Kernel gather_gradients({"gather_backward"}, make_gather_backward);

}  // namespace
}  // namespace tenon::cuda
