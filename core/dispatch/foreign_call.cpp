#include <limits>
#include <string_view>

#include <fmt/core.h>

#include <tenon/core/dispatch/foreign_call.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/error.h>

namespace tenon {

namespace {

struct AttrRange {
  std::string_view name;
  int64_t least, most;
};

constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
constexpr int64_t kRank = Shape::max_rank;

// What an attribute means is the same in all operators that have it.
constexpr AttrRange kRanges[] = {
    {"stride", 1, kMax},
    {"dilation", 1, kMax},
    {"groups", 1, kMax},
    {"num_groups", 1, kMax},
    {"kernel_size", 1, kMax},
    {"n", 0, kMax},
    {"step", 1, kMax},
    {"size", 1, kMax},
    {"padding", 0, kMax},
    {"before", -kMax, kMax},
    {"after", -kMax, kMax},
    {"dim", 0, kRank - 1},
    {"dims", 0, kRank - 1},
    {"dim1", 0, kRank - 1},
    {"dim2", 0, kRank - 1},
    {"k", -kMax, kMax},
    {"output_size", 0, kMax},
    {"normalized_ndim", 0, kRank},
    {"dtype", 0, static_cast<int64_t>(DType::boolean)},
};

void require_in(const CallDesc& call, const Attr& attr, const AttrRange& range, int64_t value) {
  if (value < range.least || value > range.most)
    throw ValueError(fmt::format("{}: the attribute {} has to be from {} to {}, found {}",
                                 call.op->name, attr.name, range.least, range.most, value));
}

}  // namespace

void require_sane_attributes(const CallDesc& call) {
  for (const Attr& attr : call.attrs.all())
    for (const AttrRange& range : kRanges) {
      if (range.name != attr.name) continue;
      if (attr.kind == TN_ATTR_INT) require_in(call, attr, range, attr.i);
      for (const int64_t value : attr.list())
        if (attr.kind == TN_ATTR_INTS) require_in(call, attr, range, value);
    }
}

}  // namespace tenon
