// Writing and combining at indices, in the order of the index. Where lines along `dim` are many or
// short a thread goes down each; else the places are sorted, and a thread takes all that is written
// to one. An index out of range is filed as a fault, and goes nowhere.
#include <tenon/plugins/sdk/requests/indexing.h>
#include <tenon/plugins/sdk/scatter.h>

#include "device/block_reduce.h"
#include "device/sort.h"
#include "kernels/indexing/add_rows.h"

namespace tenon::cuda {
namespace {

struct Target {
  int64_t size, stride;  // of y along `dim`
  bool include_self;
  Fault* fault;
  FaultSite site;
};

// The lines without their dimension: positions in the index, index, src, y; and the steps along it.
struct ScatterLines {
  int64_t count;
  int64_t step[3];  // of positions, index and src
};

template <class Put, class T, class I>
__global__ void __launch_bounds__(kBlock)
    scatter_lines(const __grid_constant__ Layout<4> layout, ScatterLines lines, Target target,
                  const I* index, const T* src, T* y) {
  for (uint32_t line = blockIdx.x * blockDim.x + threadIdx.x; line < layout.numel;
       line += gridDim.x * blockDim.x) {
    uint32_t offset[1][4];
    layout.offsets(line, 0, offset);
    T* const to = y + offset[0][3];
    const auto each = [&](auto&& f) {
      for (int64_t i = 0; i < lines.count; ++i) {
        const int64_t k = index[offset[0][1] + i * lines.step[1]];
        if (k >= 0 && k < target.size)
          f(to[k * target.stride], src[offset[0][2] + i * lines.step[2]]);
        else
          file_fault(target.fault, target.site, offset[0][0] + i * lines.step[0], k, target.size);
      }
    };
    if (!target.include_self) each([](T& at, T) { at = Put::kFirst; });
    each([](T& at, T x) { at = Put::put(at, x); });
  }
}

// Operands of the layout: index, src, y.
template <class I>
__global__ void __launch_bounds__(kBlock)
    places_written(const __grid_constant__ Layout<3> layout, Target target, const I* index,
                   uint32_t* places, uint32_t* items, uint32_t none) {
  for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < layout.numel;
       at += gridDim.x * blockDim.x) {
    uint32_t offset[1][3];
    layout.offsets(at, 0, offset);
    const int64_t k = index[offset[0][0]];
    const bool inside = k >= 0 && k < target.size;
    if (!inside) file_fault(target.fault, target.site, at, k, target.size);
    places[at] = inside ? static_cast<uint32_t>(offset[0][2] + k * target.stride) : none;
    items[at] = at;
  }
}

// Those at the first of equal places take all that is written there.
template <class Put, class T>
__global__ void __launch_bounds__(kBlock)
    write_places(const __grid_constant__ Layout<3> layout, Target target, const uint32_t* places,
                 const uint32_t* items, uint32_t none, const T* src, T* y) {
  for (uint32_t j = blockIdx.x * blockDim.x + threadIdx.x; j < layout.numel;
       j += gridDim.x * blockDim.x) {
    const uint32_t place = places[j];
    if (place == none || (j > 0 && places[j - 1] == place)) continue;
    T value = target.include_self ? y[place] : Put::kFirst;
    for (uint32_t i = j; i < layout.numel && places[i] == place; ++i) {
      uint32_t offset[1][3];
      layout.offsets(items[i], 0, offset);
      value = Put::put(value, src[offset[0][1]]);
    }
    y[place] = value;
  }
}

void copy_self(const tn_run& run, size_t bytes) {
  if (run.outputs[0] == run.inputs[0] || bytes == 0) return;
  check(cudaMemcpyAsync(run.outputs[0], run.inputs[0], bytes, cudaMemcpyDeviceToDevice,
                        run.stream->handle),
        "cudaMemcpyAsync");
}

struct ScatterPlan {
  sdk::ScatterRequest r;
  tn_tensor_desc index, src;
  int64_t elements, count;
  FaultSite site;

  size_t bytes() const { return static_cast<size_t>(elements) * sdk::dtype_size(r.dtype); }
  Target target(const tn_run& run) const {
    return {r.size, r.stride, r.include_self, run.stream->fault, site};
  }
};

template <class Put, class T, class I>
tn_plan* scatter_by_lines(const ScatterPlan& p) {
  tn_tensor_desc parts[] = {p.index, p.index, p.src, p.r.seen};  // the first becomes positions
  int64_t stride = 1;
  for (uint32_t d = p.index.rank; d-- > 0; stride *= p.index.shape[d]) parts[0].strides[d] = stride;
  ScatterLines lines{p.index.shape[p.r.dim], {}};
  for (int k = 0; k < 3; ++k) lines.step[k] = parts[k].strides[p.r.dim];
  for (auto& part : parts) part.shape[p.r.dim] = 1;
  const auto pieces = Nest({&parts[0], &parts[1], &parts[2], &parts[3]}).pieces();
  if (pieces.size() != 1) sdk::unsupported("2^31 elements and more");
  return make_plan([=, layout = pieces[0].template layout<4>()](const tn_run& run) {
    copy_self(run, p.bytes());
    launch(run.stream, stride_blocks(*run.stream->device, layout.numel), kBlock,
           scatter_lines<Put, T, I>, layout, lines, p.target(run),
           static_cast<const I*>(run.inputs[1]), static_cast<const T*>(run.inputs[2]),
           static_cast<T*>(run.outputs[0]));
  });
}

template <class Put, class T, class I>
tn_plan* scatter_by_places(const tn_device& device, const ScatterPlan& p) {
  if (p.elements >= UINT32_MAX || p.count > INT32_MAX)
    sdk::unsupported("{} indices into {} elements; 2^31 - 1 and 2^32 - 2 are the most", p.count,
                     p.elements);
  const auto pieces = Nest({&p.index, &p.src, &p.r.seen}).pieces();
  if (pieces.size() != 1) sdk::unsupported("2^31 elements and more in few lines");
  int bits = 1;
  while (bits < 32 && (int64_t{1} << bits) <= p.elements) ++bits;
  const uint64_t list_bytes = (static_cast<uint64_t>(p.count) * sizeof(uint32_t) + 255) / 256 * 256;
  uint64_t scratch_bytes;
  {
    CurrentDevice current(&device);
    scratch_bytes = sort_scratch_bytes(p.count, bits);
  }
  auto body = [=, layout = pieces[0].template layout<3>()](const tn_run& run) {
    auto* const memory = static_cast<char*>(run.workspace);
    const auto list = [&](uint64_t i) {
      return reinterpret_cast<uint32_t*>(memory + i * list_bytes);
    };
    const auto none = static_cast<uint32_t>(p.elements);
    const unsigned blocks = stride_blocks(*run.stream->device, p.count);
    copy_self(run, p.bytes());
    launch(run.stream, blocks, kBlock, places_written<I>, layout, p.target(run),
           static_cast<const I*>(run.inputs[1]), list(0), list(2), none);
    sort_pairs(run.stream, memory + 4 * list_bytes, scratch_bytes, list(0), list(1), list(2),
               list(3), p.count, bits);
    launch(run.stream, blocks, kBlock, write_places<Put, T>, layout, p.target(run), list(1),
           list(3), none, static_cast<const T*>(run.inputs[2]), static_cast<T*>(run.outputs[0]));
  };
  return make_plan(body, 4 * list_bytes + scratch_bytes);
}

template <class Put, class T>
tn_plan* plan_scatter(const tn_device& device, const ScatterPlan& p) {
  constexpr int64_t kShortLine = 32;
  const int64_t along = p.index.shape[p.r.dim];
  const bool lines = p.count / along >= kManyLines || along <= kShortLine;
  return with_index(p.r.index, [&]<class I>(I) {
    return lines ? scatter_by_lines<Put, T, I>(p) : scatter_by_places<Put, T, I>(device, p);
  });
}

tn_plan* make_scatter(tn_device* device, const Request& request) {
  const auto r = sdk::ScatterRequest::from(request);
  const ScatterPlan p{r,
                      request.input(1),
                      request.input(2),
                      sdk::numel(request.output(0)),
                      sdk::numel(request.input(1)),
                      request.op() == "scatter" ? FaultSite::scatter : FaultSite::scatter_reduce};
  if (p.count == 0)
    return make_plan([bytes = p.bytes()](const tn_run& run) { copy_self(run, bytes); });
  if (r.reduce == sdk::ScatterReduce::assign)
    return with_width(r.dtype,
                      [&]<class T>(T) { return plan_scatter<sdk::AssignTo<T>, T>(*device, p); });
  return with_number(sdk::byte_for_bool(r.dtype), [&]<class T>(T) {
    switch (r.reduce) {
      case sdk::ScatterReduce::sum:
        return plan_scatter<sdk::AddTo<T>, T>(*device, p);
      case sdk::ScatterReduce::prod:
        return plan_scatter<sdk::MultiplyTo<T>, T>(*device, p);
      case sdk::ScatterReduce::amax:
        return plan_scatter<sdk::LargestTo<T>, T>(*device, p);
      default:
        return plan_scatter<sdk::SmallestTo<T>, T>(*device, p);
    }
  });
}
const sdk::Kernel scatters({"scatter", "scatter_reduce"}, make_scatter);

}  // namespace
}  // namespace tenon::cuda
