// Fused programs whose members reduce rows: how a group of threads works on a row, and the source
// of the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/plugins/sdk/requests/fused.h>

struct tn_device;

namespace tenon::cuda {

struct FusedRows {
  // How the elements of an input's row lie: one behind the other, one for all, or at equal
  // distances.
  enum class Access : uint8_t { line, one, steps };
  // A step that reduces, as its own kernel would do it of contiguous rows.
  struct Reduction {
    size_t step;
    const char* reducer;   // of kernels/reduction/reducers.h
    tn_dtype dtype;        // of what it folds
    int per_load;          // elements, which decides on the order
    double parameter = 1;  // for its end
  };

  int64_t rows = 0, cols = 0;
  std::vector<Access> inputs;
  std::vector<int64_t> steps;                 // within a row, of each input
  std::vector<int64_t> sizes;                 // dimensions of which rows are one, outermost first
  std::vector<std::vector<int64_t>> strides;  // of each input in these
  std::vector<Reduction> reductions;
  unsigned lanes = 0, block = 0, grid = 0;  // of a row; threads of a block; blocks

  // Throws sdk::Error (TN_CODE_UNSUPPORTED) where the members' own kernels would share rows out in
  // different ways, or cut one into parts.
  static FusedRows of(const tn_device& device, const sdk::FusedRequest& program,
                      const sdk::Request& request);
};

// As fused_source() has it. A program is run over a row once for each reduction, which folds what
// the steps before it make of the row, and once for the results: what is between is computed again
// instead of kept.
std::string fused_rows_source(const sdk::FusedRequest& program, const std::vector<bool>& wanted,
                              const FusedRows& rows);

}  // namespace tenon::cuda
