// From the blocks in which oneDNN writes the gradient of a weight to rows.
#pragma once

#include <optional>
#include <vector>

#include "runtime/primitive.h"

namespace tenon::onednn {

// A weight of f32 in blocks of 8 x 8 or 16 x 16 channels, in the order (o / B, i / B, taps, i % B,
// o % B), copied to (o, i, taps). oneDNN 2.6's own copy takes two to four times as long as this
// one, which turns four vectors at a time (docs/benchmarks.md).
class FromBlocks {
 public:
  // Nothing for other layouts, which are left to oneDNN.
  static std::optional<FromBlocks> between(const Desc& blocks, const Desc& rows);
  void copy(const float* blocks, float* rows) const;

 private:
  int64_t block_, outs_, ins_;        // channels of a block, and blocks in both directions
  int64_t out_step_, in_step_, row_;  // from block to block, and from row to row
  std::vector<int64_t> places_;  // in a block, of the vectors of successive elements of its rows
};

}  // namespace tenon::onednn
