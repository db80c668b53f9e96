#include "kernels/pointwise/fused_code.h"

#include <string_view>

namespace tenon::cpu {
namespace {

using sdk::FusedOperand, sdk::FusedStep;
using Access = FusedTiles::Access;
using Extent = FusedCode::Extent;

constexpr int64_t kLargestTile = 4096, kSmallestTile = 16, kLine = 64;

// All tensors in the shape of the whole program; those that are NULL are not wanted.
class Tensors {
 public:
  Tensors(const sdk::FusedRequest& program, const Request& request) {
    for (size_t i = 0; i < request.num_outputs(); ++i)
      add(program, request.has_output(i) ? &request.output(i) : nullptr);
    for (size_t i = 0; i < request.num_inputs(); ++i) add(program, &request.input(i));
    for (size_t t = 0; t < descs_.size(); ++t)
      pointers_.push_back(wanted_[t] ? &descs_[t] : nullptr);
  }
  const tn_tensor_desc* operator[](size_t t) const { return pointers_[t]; }
  std::span<const tn_tensor_desc* const> all() const { return pointers_; }

 private:
  void add(const sdk::FusedRequest& program, const tn_tensor_desc* d) {
    descs_.push_back(d ? program.expanded(*d) : program.whole);
    wanted_.push_back(d != nullptr);
  }

  std::vector<tn_tensor_desc> descs_;
  std::vector<bool> wanted_;
  std::vector<const tn_tensor_desc*> pointers_;
};

class Compiler {
 public:
  // For tiles of at most so many elements; or rows, where the program reduces them.
  Compiler(const sdk::FusedRequest& program, const Request& request, const Tensors& tensors,
           int64_t size)
      : program_(program),
        request_(request),
        tensors_(tensors),
        reduces_(program.reduces()),
        code_{FusedTiles(tensors.all(), reduces_), {}, {}, {}, {}, 0} {
    reduces_ ? code_.tiles.cut_rows(size) : code_.tiles.cut(size);
    last_use_.assign(program.steps.size(), 0);
    output_of_.assign(program.steps.size(), FusedCode::kNowhere);
    for (size_t s = 0; s < program.steps.size(); ++s)
      for (auto& operand : program.steps[s].operands)
        if (operand.kind == FusedOperand::step) last_use_[operand.index] = s;
    for (size_t i = 0; i < program.results.size(); ++i)
      if (tensors_[i]) output_of_[program.results[i]] = static_cast<uint32_t>(i);
    for (size_t i = 0; i < request.num_inputs(); ++i)
      reduces_ ? place_row_input(static_cast<uint32_t>(i)) : place_input(i);
    for (size_t s = 0; s < program.steps.size(); ++s) place_step(s);
  }

  FusedCode code() && { return std::move(code_); }
  // Bytes of the cache that a tile takes: scratch memory, and the memory of tensors.
  int64_t footprint() const {
    int64_t bytes = code_.scratch;
    for (auto& p : code_.places)
      if (p.tensor != FusedCode::kNowhere && p.extent != Extent::one_value)
        bytes += p.size * elements(p.extent);
    return bytes;
  }

 private:
  int64_t size_of_tensor(size_t t) const {
    return static_cast<int64_t>(sdk::dtype_size(tensors_[t]->dtype));
  }
  int64_t elements(Extent extent) const { return code_.elements(extent, code_.tiles.tile_rows()); }
  uint32_t add(const FusedCode::Place& place) {
    code_.places.push_back(place);
    return static_cast<uint32_t>(code_.places.size() - 1);
  }
  uint32_t add_in_memory(size_t tensor, Extent extent) {
    return add({size_of_tensor(tensor), static_cast<uint32_t>(tensor), 0, extent, true});
  }
  uint32_t add_in_scratch(int64_t size, Extent extent, bool lasts) {
    const int64_t bytes = size * elements(extent), offset = code_.scratch;
    code_.scratch += (bytes + kLine - 1) / kLine * kLine;
    return add({size, FusedCode::kNowhere, offset, extent, lasts});
  }

  void place_input(size_t i) {
    const size_t tensor = request_.num_outputs() + i;
    const Access access = code_.tiles.access(tensor);
    if (access == Access::scattered) return load(tensor, Extent::all);
    place_of_input_.push_back(
        add_in_memory(tensor, access == Access::single ? Extent::one_value : Extent::all));
  }
  void load(size_t tensor, Extent extent) {
    place_of_input_.push_back(add_in_scratch(size_of_tensor(tensor), extent, true));
    code_.loads.push_back({static_cast<uint32_t>(tensor), place_of_input_.back()});
  }

  // What a reduction reads are whole rows, one behind the other.
  void place_row_input(uint32_t i) {
    const FusedOperand input{FusedOperand::input, i};
    const size_t tensor = request_.num_outputs() + i;
    const Extent extent = program_.is_row_value(input) ? Extent::rows : Extent::all;
    const bool repeats = code_.tiles.tile_rows() == 1 || code_.tiles.row_stride(tensor) == 0;
    Extent part = extent;
    if (extent == Extent::rows && repeats) part = Extent::one_value;
    if (extent == Extent::all && repeats && code_.tiles.col_stride(tensor) == 1 && !is_reduced(i))
      part = Extent::cols;
    if (part != extent || lies_in_line(tensor, extent))
      place_of_input_.push_back(add_in_memory(tensor, part));
    else
      load(tensor, extent);
  }
  bool is_reduced(uint32_t input) const {
    return std::any_of(program_.steps.begin(), program_.steps.end(), [&](auto& step) {
      return step.member->reduces && step.operands[0].kind == FusedOperand::input &&
             step.operands[0].index == input;
    });
  }
  // Whether the values of a tile are one behind the other in the tensor's memory.
  bool lies_in_line(size_t tensor, Extent extent) const {
    const FusedTiles& tiles = code_.tiles;
    if (!reduces_) return tiles.access(tensor) == Access::line;
    const bool one_row = tiles.tile_rows() == 1;
    const int64_t row = tiles.row_stride(tensor);
    if (extent == Extent::rows) return one_row || row == 1;
    return (tiles.tile_cols() == 1 || tiles.col_stride(tensor) == 1) &&
           (one_row || row == tiles.tile_cols());
  }

  uint32_t place_of(const FusedOperand& operand) const {
    if (operand.kind == FusedOperand::absent) return FusedCode::kNowhere;
    return operand.kind == FusedOperand::input ? place_of_input_[operand.index]
                                               : code_.steps[operand.index].out;
  }

  Extent extent_of(size_t s, const FusedCode::Step& code) const {
    const FusedStep& step = program_.steps[s];
    if (output_of_[s] != FusedCode::kNowhere)
      return reduces_ && program_.is_row_value({FusedOperand::step, static_cast<uint32_t>(s)})
                 ? Extent::rows
                 : Extent::all;
    if (step.member->reduces) return Extent::rows;
    int extent = Extent::one_value;
    for (const uint32_t place : code.in)
      if (place != FusedCode::kNowhere) extent |= code_.places[place].extent;
    return extent & Extent::cols ? Extent::all : static_cast<Extent>(extent);
  }

  void place_step(size_t s) {
    const FusedStep& step = program_.steps[s];
    FusedCode::Step code{{}, FusedCode::kNowhere, Extent::one_value};
    for (size_t k = 0; k < std::size(code.in); ++k) code.in[k] = place_of(step.operands[k]);
    code.extent = extent_of(s, code);
    const uint32_t output = output_of_[s];
    const auto size = static_cast<int64_t>(sdk::dtype_size(step.dtype));
    if (output != FusedCode::kNowhere) {
      code.out = may_write_at_once(output, s) ? add_in_memory(output, code.extent)
                                              : add_in_scratch(size, code.extent, true);
      if (code_.places[code.out].tensor == FusedCode::kNowhere)
        code_.stores.push_back({output, code.out});
    } else if (code.extent == Extent::one_value) {
      code.out = add_in_scratch(size, code.extent, true);
    } else {
      code.out = reused_place(s, code, size);
      if (code.out == FusedCode::kNowhere) code.out = add_in_scratch(size, code.extent, false);
    }
    code_.steps.push_back(code);
    release_operands(s, code.out);
  }

  // Whether the step may write the output's memory while later steps run: not where that memory is
  // an input's and one of them reads inputs where they lie.
  bool may_write_at_once(uint32_t output, size_t s) const {
    if (!lies_in_line(output, extent_of(s, FusedCode::Step{}))) return false;
    if (request_.alias(output) < 0) return true;
    for (size_t later = s + 1; later < program_.steps.size(); ++later)
      for (auto& operand : program_.steps[later].operands)
        if (operand.kind == FusedOperand::input &&
            code_.places[place_of_input_[operand.index]].tensor != FusedCode::kNowhere)
          return false;
    return true;
  }

  // A place that nobody reads after this step: a kernel may write over its own operand, element
  // for element. Copies are not of that kind.
  uint32_t reused_place(size_t s, const FusedCode::Step& code, int64_t size) {
    const FusedStep& step = program_.steps[s];
    const bool over_operands = std::string_view(step.member->op) != "copy";
    const auto fits = [&](uint32_t place) {
      return code_.places[place].size == size && code_.places[place].extent == code.extent;
    };
    for (size_t k = 0; over_operands && k < std::size(code.in); ++k)
      if (ends_at(s, step.operands[k]) && fits(code.in[k])) return code.in[k];
    const auto found = std::find_if(free_.begin(), free_.end(), fits);
    if (found == free_.end()) return FusedCode::kNowhere;
    const uint32_t place = *found;
    free_.erase(found);
    return place;
  }
  bool ends_at(size_t s, const FusedOperand& operand) const {
    return operand.kind == FusedOperand::step && last_use_[operand.index] == s &&
           !code_.places[code_.steps[operand.index].out].lasts;
  }
  void release_operands(size_t s, uint32_t written) {
    for (auto& operand : program_.steps[s].operands) {
      if (!ends_at(s, operand)) continue;
      const uint32_t place = code_.steps[operand.index].out;
      if (place != written && std::find(free_.begin(), free_.end(), place) == free_.end())
        free_.push_back(place);
    }
  }

  const sdk::FusedRequest& program_;
  const Request& request_;
  const Tensors& tensors_;
  const bool reduces_;
  FusedCode code_;
  std::vector<size_t> last_use_;     // the last step that reads the result of this one
  std::vector<uint32_t> output_of_;  // the output that a step makes
  std::vector<uint32_t> place_of_input_, free_;
};

}  // namespace

FusedCode FusedCode::of(const sdk::FusedRequest& program, const Request& request) {
  const Tensors tensors(program, request);
  const bool reduces = program.reduces();
  const int64_t row = reduces ? program.whole.shape[program.whole.rank - 1] : 1;
  if (row > kLongestRow)
    sdk::unsupported("rows of more than {} elements are not reduced in a program, found {}",
                     kLongestRow, row);
  const int64_t least = reduces ? 1 : kSmallestTile;
  for (int64_t size = std::max<int64_t>(1, kLargestTile / row);; size /= 2) {
    Compiler compiler(program, request, tensors, size);
    if (reduces && size == 1 && compiler.footprint() > kMaxOfRow)
      sdk::unsupported("what the program has of a row takes {} bytes of {} of the cache",
                       compiler.footprint(), kMaxOfRow);
    const int64_t most = reduces ? kMaxOfRows : kScratch;
    if (compiler.footprint() <= most || size == least) return std::move(compiler).code();
  }
}

}  // namespace tenon::cpu
