// A fused program as it is run on tiles: where each value of a tile is.
#pragma once

#include <vector>

#include "kernels/pointwise/fused_tiles.h"

namespace tenon::cpu {

struct FusedCode {
  static constexpr uint32_t kNowhere = ~0u;
  // What a thread keeps of a tile, of 32 or 48 KB of first-level cache.
  static constexpr int64_t kScratch = 24 * 1024;

  // Where the values of a tile are: in the memory of a tensor, or else in the scratch memory.
  struct Place {
    int64_t size;     // bytes of an element
    uint32_t tensor;  // outputs and then inputs; or kNowhere
    int64_t offset;   // in the scratch memory
    bool one_value;   // the whole tile is this value
    bool lasts;       // it is not written again in the same tile
  };
  // A step whose operands are all one value is run for that one alone.
  struct Step {
    uint32_t in[3], out;  // places; kNowhere: the operand is absent
    bool one_value;
  };
  // A tensor whose tile is moved, from its memory or to it.
  struct Move {
    uint32_t tensor, place;
  };

  FusedTiles tiles;
  std::vector<Place> places;
  std::vector<Step> steps;
  std::vector<Move> loads, stores;  // before the first step; after the last
  int64_t scratch = 0;              // bytes

  // For tiles that fit the cache. The request is the one that the program was read from.
  static FusedCode of(const sdk::FusedRequest& program, const Request& request);
};

}  // namespace tenon::cpu
