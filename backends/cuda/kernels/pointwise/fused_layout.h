// Where a fused program's kernel finds the elements of its tensors: what of that is part of the
// kernel's source, and what a launch brings.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/plugins/sdk/requests/fused.h>

namespace tenon::cuda {

struct FusedLayout {
  // How the elements of an input are found. Outputs are lines.
  enum class Access : uint8_t {
    line,         // element n lies at n
    one,          // one element for all
    nested_line,  // by the nest; the elements of a row lie one behind the other,
    nested_one,   // are one,
    nested,       // or have some stride
  };
  // A part of the elements that 32-bit arithmetic can address.
  struct Piece {
    int64_t numel;
    int64_t first;               // element of all
    std::vector<int64_t> base;   // for each input, in elements
    std::vector<int64_t> sizes;  // of the nest, outermost first
  };

  std::vector<Access> inputs;
  int rank = 0;        // dimensions of the nest, through which the nested inputs are found
  int per_thread = 1;  // elements, one behind the other in the innermost dimension
  std::vector<std::vector<int64_t>> strides;  // of each input in the nest, outermost first
  std::vector<Piece> pieces;

  static bool is_nested(Access access) { return access >= Access::nested_line; }

  // Throws sdk::Error where an output has gaps, or the pieces would be too many.
  static FusedLayout of(const sdk::FusedRequest& program, const sdk::Request& request);
};

}  // namespace tenon::cuda
