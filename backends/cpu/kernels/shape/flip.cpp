// The same elements in another order along dimensions: from back to front, and shifted around.
#include <vector>

#include "kernels/shape/copy.h"
#include "simd/copy.h"

namespace tenon::cpu {
namespace {

// Requires an output of the input's shape and dtype.
void require_same(const Request& request) {
  auto &x = request.input(0), &y = request.output(0);
  require_contiguous(y);
  if (x.dtype != y.dtype || !sdk::same_shape(x, y))
    sdk::invalid("the output has the shape and the dtype of x, {}, found {}", sdk::shape_text(x),
                 sdk::shape_text(y));
}

// A part of x that keeps its order, and where it begins in y and x, in bytes.
struct MovedPart {
  tn_tensor_desc to, from;
  int64_t to_begin = 0, from_begin = 0;
};
struct MovedCopy {
  StridedCopy copy;
  int64_t to_begin, from_begin;

  explicit MovedCopy(const MovedPart& part)
      : copy(part.to, part.from), to_begin(part.to_begin), from_begin(part.from_begin) {}
  void run(const tn_run& run) const {
    copy.run(static_cast<char*>(run.outputs[0]) + to_begin,
             static_cast<const char*>(run.inputs[0]) + from_begin);
  }
};

// Read with negative strides, from the last element on.
tn_plan* make_flip(tn_device*, const Request& request) {
  require_same(request);
  MovedPart part{request.output(0), request.input(0)};
  if (sdk::numel(part.to) == 0) return empty_plan();
  tn_tensor_desc& x = part.from;
  for (int64_t d : request.get_ints("dims")) {
    if (d < 0 || d >= x.rank) sdk::invalid("dim {} of a tensor of {} dimensions", d, x.rank);
    part.from_begin += (x.shape[d] - 1) * x.strides[d];
    x.strides[d] = -x.strides[d];
  }
  part.from_begin *= static_cast<int64_t>(sdk::dtype_size(x.dtype));
  const MovedCopy copy(part);
  return sdk::make_plan([copy](const tn_run& run) { copy.run(run); }, {0, copy.copy.cost_ns()});
}
const sdk::Kernel flips({"flip"}, make_flip);

// ---- roll

// From 0 to its size for each dimension.
std::vector<int64_t> shifts_of(const Request& request) {
  auto& x = request.input(0);
  auto shifts = request.get_ints("shifts");
  if (shifts.size() != x.rank) sdk::invalid("expects a shift for each dimension of x");
  for (uint32_t d = 0; d < x.rank; ++d) {
    if (shifts[d] < 0 || shifts[d] > x.shape[d])
      sdk::invalid("a shift of {} along a dimension of {}", shifts[d], x.shape[d]);
    if (shifts[d] == x.shape[d]) shifts[d] = 0;
  }
  return shifts;
}

// Two parts of each part that a shift separates: x may lie in any way.
tn_plan* make_roll_of_parts(const Request& request, const std::vector<int64_t>& shifts) {
  const auto size = static_cast<int64_t>(sdk::dtype_size(request.input(0).dtype));
  std::vector<MovedPart> parts{{request.output(0), request.input(0)}};
  for (size_t d = 0; d < shifts.size(); ++d) {
    if (shifts[d] == 0) continue;
    const size_t count = parts.size();
    for (size_t i = 0; i < count; ++i) {
      MovedPart &first = parts[i], last = first;
      const int64_t rest = first.to.shape[d] - shifts[d];
      first.to.shape[d] = first.from.shape[d] = rest;
      first.to_begin += shifts[d] * first.to.strides[d] * size;
      last.to.shape[d] = last.from.shape[d] = shifts[d];
      last.from_begin += rest * last.from.strides[d] * size;
      parts.push_back(last);
    }
  }
  const std::vector<MovedCopy> copies(parts.begin(), parts.end());
  uint64_t cost = 0;
  for (auto& part : copies) cost += part.copy.cost_ns();
  return sdk::make_plan(
      [copies](const tn_run& run) {
        for (auto& part : copies) part.run(run);
      },
      {0, cost});
}

// Of contiguous x: rows that end with the last dimension that is shifted, each of which is written
// as a whole.
struct Roll {
  static constexpr int64_t kBytes = 256 * 1024;  // that one thread copies at a time

  struct Dim {
    int64_t size, shift;
  };
  std::vector<Dim> outer;               // of the rows; those without a shift are one
  int64_t rows = 1, row = 1, head = 0;  // bytes of a row, and of those that come from its end

  Roll(const tn_tensor_desc& x, const std::vector<int64_t>& shifts) {
    row = static_cast<int64_t>(sdk::dtype_size(x.dtype));
    for (uint32_t d = x.rank; d-- > 0;) {
      if (head == 0) {
        head = shifts[d] * row;
        row *= x.shape[d];
        continue;
      }
      rows *= x.shape[d];
      if (!outer.empty() && outer.back().shift == 0 && shifts[d] == 0)
        outer.back().size *= x.shape[d];
      else
        outer.push_back({x.shape[d], shifts[d]});
    }
  }

  int64_t source_of(int64_t r) const {
    int64_t from = 0, unit = 1;
    for (auto& dim : outer) {
      const int64_t k = r % dim.size - dim.shift;
      r /= dim.size;
      from += (k < 0 ? k + dim.size : k) * unit;
      unit *= dim.size;
    }
    return from;
  }

  void run(const tn_run& run) const {
    auto* y = static_cast<char*>(run.outputs[0]);
    auto* x = static_cast<const char*>(run.inputs[0]);
    const int64_t rest = row - head;
    if (rows == 1) {
      copy_bytes(y, x + rest, head);
      return copy_bytes(y + head, x, rest);
    }
    parallel_for(rows, std::max<int64_t>(1, kBytes / row), [&](int64_t r, int64_t end, uint32_t) {
      for (; r < end; ++r) {
        const char* from = x + source_of(r) * row;
        copy_row(y + r * row, from + rest, head);
        copy_row(y + r * row + head, from, rest);
      }
    });
  }
};

tn_plan* make_roll(tn_device*, const Request& request) {
  require_same(request);
  auto& x = request.input(0);
  const auto shifts = shifts_of(request);
  if (sdk::numel(x) == 0) return empty_plan();
  if (!sdk::is_contiguous(x)) return make_roll_of_parts(request, shifts);
  const Roll roll(x, shifts);
  const auto bytes = static_cast<uint64_t>(roll.rows * roll.row);
  return sdk::make_plan([roll](const tn_run& run) { roll.run(run); },
                        {0, 20 + bytes / 20 + static_cast<uint64_t>(roll.rows) * 10});
}
const sdk::Kernel rolls({"roll"}, make_roll);

}  // namespace
}  // namespace tenon::cpu
