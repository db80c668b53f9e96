// A program of pointwise operators, tile by tile: the plan of each member runs over a tile, whose
// values stay in the first-level cache until the last member has read them. So a fused program has
// the bits of its members run one by one, and every pointwise kernel can be a member. Where members
// reduce rows, a tile is whole rows; of long ones a single one, in the second-level cache.
#include <memory>

#include "kernels/pointwise/fused_code.h"

namespace tenon::cpu {
namespace {

using sdk::FusedRequest, sdk::FusedStep;
using Extent = FusedCode::Extent;

struct DestroyPlan {
  void operator()(tn_plan* plan) const { plan->destroy(plan); }
};
using OwnedPlan = std::unique_ptr<tn_plan, DestroyPlan>;

class FusedLoop {
 public:
  FusedLoop(tn_device* device, FusedRequest program, const Request& request);
  void run(const tn_run& run) const {
    parallel_for(code_.tiles.count(), grain_, [&](int64_t begin, int64_t end, uint32_t slot) {
      run_tiles(run, begin, end, slot);
    });
  }
  uint64_t workspace_bytes() const {
    return on_stack() ? 0 : static_cast<uint64_t>(code_.scratch) * threads_;
  }
  uint64_t cost_ns() const { return cost_ns_; }

 private:
  // The members' plans for tiles of so many elements. Several threads run one of them at once,
  // which plans of pointwise kernels allow: they keep nothing from run to run.
  struct Plans {
    int64_t elements;
    std::vector<OwnedPlan> steps;
  };
  // The memory of one thread, and where in it and in the tensors the values of its tile are.
  struct Tile {
    std::vector<void*> at;
    const int64_t* offsets = nullptr;
    int64_t rows = -1, cols = -1;
  };

  OwnedPlan plan_of(tn_device* device, size_t s, int64_t elements) const;
  OwnedPlan row_plan_of(tn_device* device, size_t s, int64_t tile_rows) const;
  tn_tensor_desc describe_rows(tn_dtype dtype, FusedCode::Extent extent, FusedCode::Extent step,
                               int64_t tile_rows) const;
  bool on_stack() const { return code_.scratch <= FusedCode::kScratch; }
  void* tensor_of(const tn_run& run, size_t tensor) const {
    return tensor < num_outputs_ ? run.outputs[tensor] : run.inputs[tensor - num_outputs_];
  }
  double nanoseconds_of_a_tile() const;
  void run_tiles(const tn_run& run, int64_t begin, int64_t end, uint32_t slot) const;
  void load(const tn_run& run, Tile& tile, std::vector<int64_t>& held, bool same_size) const;
  void run_steps(const tn_run& run, const Tile& tile) const;
  void store(const tn_run& run, const Tile& tile) const;

  FusedRequest program_;
  FusedCode code_;
  size_t num_outputs_;
  uint32_t threads_ = thread_count();
  std::vector<Plans> plans_;
  int64_t grain_ = 1;
  uint64_t cost_ns_ = 0;
};

FusedLoop::FusedLoop(tn_device* device, FusedRequest program, const Request& request)
    : program_(std::move(program)),
      code_(FusedCode::of(program_, request)),
      num_outputs_(request.num_outputs()) {
  const bool reduces = program_.reduces();
  for (const int64_t elements : code_.tiles.sizes()) {
    auto& plans = plans_.emplace_back(Plans{elements, {}});
    for (size_t s = 0; s < program_.steps.size(); ++s)
      plans.steps.push_back(
          reduces ? row_plan_of(device, s, elements / code_.tiles.tile_cols())
                  : plan_of(device, s, code_.steps[s].extent == Extent::one_value ? 1 : elements));
  }
  const double tile_ns = nanoseconds_of_a_tile();
  cost_ns_ = 20 + static_cast<uint64_t>(tile_ns * static_cast<double>(code_.tiles.count()));
  grain_ = std::max<int64_t>(1, static_cast<int64_t>(10000 / tile_ns));
}

// What a member's plan says is for operands in memory; in the first-level cache it takes a third,
// and 0.2 ns an element less where it computes more (measured with AVX-512).
double FusedLoop::nanoseconds_of_a_tile() const {
  double ns = 10;
  const auto elements = static_cast<double>(plans_[0].elements);
  const auto count_of = [&](Extent extent) {
    return static_cast<double>(code_.elements(extent, code_.tiles.tile_rows()));
  };
  for (size_t s = 0; s < code_.steps.size(); ++s) {
    const double count =
        count_of(program_.steps[s].member->reduces ? Extent::all : code_.steps[s].extent);
    const double each = (static_cast<double>(plans_[0].steps[s]->cost_ns) - 20) / count;
    ns += 10 + std::max(each / 3, each - 0.2) * count;
  }
  for (auto& place : code_.places)
    if (place.tensor != FusedCode::kNowhere && place.extent != Extent::one_value)
      ns += 0.025 * static_cast<double>(place.size) * count_of(place.extent);
  for (auto& moved : {code_.loads, code_.stores})
    ns += 0.5 * elements * static_cast<double>(moved.size());
  return ns;
}

// Returns the plan of a step for contiguous elements, or one value beside them.
OwnedPlan FusedLoop::plan_of(tn_device* device, size_t s, int64_t elements) const {
  const FusedStep& step = program_.steps[s];
  const auto describe = [&](tn_dtype dtype, bool one_value) {
    tn_tensor_desc d{sizeof(tn_tensor_desc), dtype, 1, {}, {}};
    d.shape[0] = elements;
    d.strides[0] = one_value && elements > 1 ? 0 : 1;
    return d;
  };
  tn_tensor_desc in[3];
  const tn_tensor_desc *inputs[3] = {}, out = describe(step.dtype, false), *output = &out;
  for (uint32_t k = 0; k < step.num_operands; ++k) {
    if (code_.steps[s].in[k] == FusedCode::kNowhere) continue;
    in[k] = describe(program_.dtype_of(step.operands[k]),
                     code_.places[code_.steps[s].in[k]].extent == Extent::one_value);
    inputs[k] = &in[k];
  }
  const tn_attr attr = step.attribute(), *attrs = &attr;
  const tn_op_request member{
      sizeof(tn_op_request), step.member->op, step.num_operands, inputs, 1, &output, nullptr,
      step.has_attr,         &attrs,          step.num_scalars};
  return OwnedPlan(sdk::create_plan(device, member));
}

// The operand of a step in the shape of the step's result: rows and columns, or rows alone.
tn_tensor_desc FusedLoop::describe_rows(tn_dtype dtype, Extent extent, Extent step,
                                        int64_t tile_rows) const {
  const int64_t cols = code_.tiles.tile_cols();
  tn_tensor_desc d{sizeof(tn_tensor_desc), dtype, step & Extent::cols ? 2u : 1u, {}, {}};
  d.shape[0] = step & Extent::rows ? tile_rows : 1;
  d.strides[0] = !(extent & Extent::rows) && d.shape[0] > 1 ? 0 : extent & Extent::cols ? cols : 1;
  d.shape[1] = cols;
  d.strides[1] = extent & Extent::cols ? 1 : 0;
  return d;
}

OwnedPlan FusedLoop::row_plan_of(tn_device* device, size_t s, int64_t tile_rows) const {
  const FusedStep& step = program_.steps[s];
  const bool reduces = step.member->reduces;
  const Extent made = code_.steps[s].extent, shape = reduces ? Extent::all : made;
  tn_tensor_desc in[3];
  const tn_tensor_desc *inputs[3] = {}, out = describe_rows(step.dtype, made, made, tile_rows),
                       *output = &out;
  for (uint32_t k = 0; k < step.num_operands; ++k) {
    const uint32_t place = code_.steps[s].in[k];
    if (place == FusedCode::kNowhere) continue;
    in[k] = describe_rows(program_.dtype_of(step.operands[k]), code_.places[place].extent, shape,
                          tile_rows);
    inputs[k] = &in[k];
  }
  const int64_t last = 1;
  const tn_attr attr = step.attribute(),
                dims{sizeof(tn_attr), "dims", TN_ATTR_INTS, 0, 0, nullptr, 1, &last},
                *attrs[] = {&attr, &dims};
  const size_t first = step.has_attr ? 0 : 1, end = reduces ? 2 : 1;
  const tn_op_request member{
      sizeof(tn_op_request), step.member->op, step.num_operands, inputs, 1, &output, nullptr,
      end - first,           attrs + first,   step.num_scalars};
  return OwnedPlan(sdk::create_plan(device, member));
}

void FusedLoop::run_tiles(const tn_run& run, int64_t begin, int64_t end, uint32_t slot) const {
  alignas(64) char stack[FusedCode::kScratch];
  char* const scratch =
      on_stack() ? stack : static_cast<char*>(run.workspace) + slot * code_.scratch;
  Tile tile;
  tile.at.resize(code_.places.size());
  for (size_t p = 0; p < tile.at.size(); ++p) tile.at[p] = scratch + code_.places[p].offset;
  // What the scratch memory holds: an operand that repeats is moved there once.
  std::vector<int64_t> held(code_.loads.size(), -1);
  code_.tiles.walk(begin, end, [&](const int64_t* offsets, int64_t rows, int64_t cols) {
    const bool same_size = rows == tile.rows && cols == tile.cols;
    tile.offsets = offsets;
    tile.rows = rows;
    tile.cols = cols;
    for (size_t p = 0; p < tile.at.size(); ++p)
      if (const auto& place = code_.places[p]; place.tensor != FusedCode::kNowhere)
        tile.at[p] =
            static_cast<char*>(tensor_of(run, place.tensor)) + offsets[place.tensor] * place.size;
    load(run, tile, held, same_size);
    run_steps(run, tile);
    store(run, tile);
  });
}

void FusedLoop::load(const tn_run& run, Tile& tile, std::vector<int64_t>& held,
                     bool same_size) const {
  for (size_t i = 0; i < code_.loads.size(); ++i) {
    const auto [tensor, place] = code_.loads[i];
    const int64_t offset = tile.offsets[tensor], size = code_.places[place].size;
    if (same_size && held[i] == offset) continue;
    held[i] = offset;
    const int64_t cols = code_.places[place].extent & Extent::cols ? tile.cols : 1;
    move_tile(static_cast<size_t>(size), tile.at[place], cols, 1,
              static_cast<const char*>(tensor_of(run, tensor)) + offset * size,
              code_.tiles.row_stride(tensor), code_.tiles.col_stride(tensor), tile.rows, cols);
  }
}

void FusedLoop::run_steps(const tn_run& run, const Tile& tile) const {
  const int64_t elements = tile.rows * tile.cols;
  const Plans* plans = plans_.data();
  while (plans->elements != elements) ++plans;
  for (size_t s = 0; s < code_.steps.size(); ++s) {
    const auto& code = code_.steps[s];
    const FusedStep& step = program_.steps[s];
    void *in[3], *out = tile.at[code.out];
    for (size_t k = 0; k < std::size(in); ++k)
      in[k] = code.in[k] == FusedCode::kNowhere ? nullptr : tile.at[code.in[k]];
    const tn_run member{sizeof(tn_run),
                        in,
                        &out,
                        step.num_scalars ? run.scalars + step.first_scalar : nullptr,
                        nullptr,
                        nullptr,
                        step.num_operands,
                        1,
                        step.num_scalars,
                        nullptr};
    tn_plan* plan = plans->steps[s].get();
    if (tn_error* e = plan->run(plan, &member)) sdk::throw_error(e);
  }
}

void FusedLoop::store(const tn_run& run, const Tile& tile) const {
  for (const auto [tensor, place] : code_.stores) {
    const int64_t size = code_.places[place].size,
                  cols = code_.places[place].extent & Extent::cols ? tile.cols : 1;
    move_tile(static_cast<size_t>(size),
              static_cast<char*>(tensor_of(run, tensor)) + tile.offsets[tensor] * size,
              code_.tiles.row_stride(tensor), code_.tiles.col_stride(tensor), tile.at[place], cols,
              1, tile.rows, cols);
  }
}

tn_plan* make_fused(tn_device* device, const Request& request) {
  auto program = FusedRequest::with_reductions(request);
  if (sdk::numel(program.whole) == 0) {
    for (size_t i = 0; i < request.num_outputs(); ++i)
      if (request.has_output(i) && sdk::numel(request.output(i)) > 0)
        sdk::unsupported("rows without elements are not reduced in a program");
    return empty_plan();
  }
  auto loop = std::make_unique<const FusedLoop>(device, std::move(program), request);
  const uint64_t cost = loop->cost_ns(), workspace = loop->workspace_bytes();
  return sdk::make_plan([loop = std::move(loop)](const tn_run& run) { loop->run(run); },
                        {workspace, cost});
}
const sdk::Kernel fused({"fused"}, make_fused);

}  // namespace
}  // namespace tenon::cpu
