// Pointwise nodes of a draft, and reductions of rows, that may become one `fused` node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/core/graph/passes/draft.h>
#include <tenon/core/graph/passes/pointwise_layout.h>
#include <tenon/core/ops/pointwise/fused.h>

namespace tenon::graph {

// A node that can be a member, and the layout of its tensors.
struct Member {
  uint32_t node = 0;
  PointwiseLayout layout;  // of a reduction, that of its operand
  int64_t row = 0;         // the elements of a row, if it reduces them; else 0

  int64_t numel() const { return layout.shape.numel(); }
};
// Returns nothing for a node that no fused program can have.
std::optional<Member> member_of(const Draft& draft, uint32_t node);

// Several members that are tried as one node, and then made one: what that node reads and writes.
class FusedGroup {
 public:
  // Makes a group of members, which are in the order of the draft. Returns nothing if no program
  // can compute them: one reads a part of what another writes, shapes do not fit, or there are too
  // many tensors.
  static std::optional<FusedGroup> of(const Draft& draft, std::vector<Member> members);
  // Finds out which results are needed outside the group. Returns false if no program can have
  // these outputs: there are too many, or if the work is skipped, only some of them keep their old
  // values.
  bool finish(Draft& draft);

  const std::vector<Member>& members() const { return members_; }
  uint32_t last_node() const { return members_.back().node; }
  // Whether the node works on the same number of elements, or on one value for each row of them.
  bool fits(const Member& member) const;

  // Whether the node has to run before or after the group: it reads or changes what the group
  // writes, or changes what the group reads.
  bool conflicts_with(const Draft& draft, const TraceNode& node) const;
  // Whether the node reads what the group writes, or reads something that the group reads.
  bool shares_with(const Draft& draft, const TraceNode& node) const;

  // Makes the plan of a finished group. Returns nothing, and the reason in `why`, if the device
  // refuses it or if it would cost more than the members do.
  Ref<PlanEntry> make_plan(const Draft& draft, std::string& why) const;
  Draft::Replacement replacement(Ref<PlanEntry> plan) const;
  // "mul, add, gelu".
  std::string names(const Draft& draft) const;

 private:
  struct Input {
    Access access;
    int32_t wired = -1;
    DType dtype = DType::f32;
    Strides strides;
    Range range;
    FusedValue value;
    bool of_rows = false;  // one value for each row
  };
  // Where a member writes, and what the last of them leaves there.
  struct Written {
    Access access;
    int32_t wired = -1;
    DType dtype = DType::f32;
    Range range;
    FusedValue value;
    uint32_t node = 0;
    bool of_rows = false;
    int32_t over_input = -1;
    bool is_output = false;
  };

  bool find_shape();
  // One value for each row, if all that the member reads is that; for a reduction always.
  bool is_of_rows(const Member& member) const { return member.row || member.numel() < numel_; }
  Strides strides_of(const Member& member, size_t input) const;
  // The strides of a result that lies without gaps.
  Strides dense_strides(bool of_rows) const;
  uint64_t bytes_of(bool of_rows, DType dtype) const;
  bool add_member(const Draft& draft, const Member& member);
  bool is_row_value(const FusedValue& value) const;
  std::optional<FusedValue> operand(const Draft& draft, const Member& member, uint32_t k);
  bool add_written(const Draft& draft, const Member& member, FusedValue step);
  bool writes(const Range& range) const;
  bool reads(const Range& range) const;
  bool is_needed(Draft& draft, const Written& written) const;
  // Returns nothing if a row of one of the tensors has gaps.
  std::optional<CallDesc> call() const;
  bool add_inputs(CallDesc& call) const;

  std::vector<Member> members_;
  int64_t numel_ = 0, row_ = 0;  // the elements of a row where a member reduces them
  size_t row_dims_ = 0;          // the last dimensions of the shape, which make up a row
  Shape shape_;
  std::vector<Input> inputs_;
  std::vector<Written> written_;
  std::vector<Scalar> scalars_;
  std::vector<bool> of_rows_;  // for each step
  FusedBuilder builder_;
  const FusedProgram* program_ = nullptr;
  bool outputs_hold_values_ = false;
};

}  // namespace tenon::graph
