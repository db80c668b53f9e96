// A fused program as it is run on tiles: where each value of a tile is.
#pragma once

#include <vector>

#include "kernels/pointwise/fused_tiles.h"

namespace tenon::cpu {

struct FusedCode {
  static constexpr uint32_t kNowhere = ~0u;
  // What a thread keeps of a tile, of 32 or 48 KB of first-level cache.
  static constexpr int64_t kScratch = 24 * 1024;

  // Where rows are reduced, a tile is several of them as long as all that the program has of them
  // takes no more than this, a part of the second-level cache; and one row at most that.
  static constexpr int64_t kMaxOfRows = 96 * 1024;
  static constexpr int64_t kMaxOfRow = 1024 * 1024;
  static constexpr int64_t kLongestRow = 64 * 1024;

  // The dimensions along which the values of a tile differ; none where the tile is one value.
  // Programs that reduce have values of each row, and rows that repeat.
  enum Extent : uint8_t { one_value = 0, rows = 1, cols = 2, all = 3 };
  // Where the values of a tile are: in the memory of a tensor, or else in the scratch memory, one
  // behind the other.
  struct Place {
    int64_t size;     // bytes of an element
    uint32_t tensor;  // outputs and then inputs; or kNowhere
    int64_t offset;   // in the scratch memory
    Extent extent;
    bool lasts;  // it is not written again in the same tile
  };
  // A step whose operands are all one value is run for that one alone.
  struct Step {
    uint32_t in[3], out;  // places; kNowhere: the operand is absent
    Extent extent;        // of its result
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

  // Returns how many elements a tile, or a part of one, of so many rows has.
  int64_t elements(Extent extent, int64_t tile_rows) const {
    return (extent & rows ? tile_rows : 1) * (extent & cols ? tiles.tile_cols() : 1);
  }

  // For tiles that fit the cache. Throws for rows that do not. The request is the one that the
  // program was read from.
  static FusedCode of(const sdk::FusedRequest& program, const Request& request);
};

}  // namespace tenon::cpu
