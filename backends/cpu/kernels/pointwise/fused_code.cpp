#include "kernels/pointwise/fused_code.h"

#include <string_view>

namespace tenon::cpu {
namespace {

using sdk::FusedOperand, sdk::FusedStep;
using Access = FusedTiles::Access;

constexpr int64_t kLargestTile = 4096, kSmallestTile = 16, kLine = 64;

std::vector<const tn_tensor_desc*> tensors_of(const Request& request) {
  std::vector<const tn_tensor_desc*> all;
  for (size_t i = 0; i < request.num_outputs(); ++i)
    all.push_back(request.has_output(i) ? &request.output(i) : nullptr);
  for (size_t i = 0; i < request.num_inputs(); ++i) all.push_back(&request.input(i));
  return all;
}

class Compiler {
 public:
  Compiler(const sdk::FusedRequest& program, const Request& request, int64_t elements)
      : program_(program),
        request_(request),
        tensors_(tensors_of(request)),
        code_{FusedTiles(tensors_), {}, {}, {}, {}, 0} {
    code_.tiles.cut(elements);
    last_use_.assign(program.steps.size(), 0);
    output_of_.assign(program.steps.size(), FusedCode::kNowhere);
    for (size_t s = 0; s < program.steps.size(); ++s)
      for (auto& operand : program.steps[s].operands)
        if (operand.kind == FusedOperand::step) last_use_[operand.index] = s;
    for (size_t i = 0; i < program.results.size(); ++i)
      if (tensors_[i]) output_of_[program.results[i]] = static_cast<uint32_t>(i);
    for (size_t i = 0; i < request.num_inputs(); ++i) place_input(i);
    for (size_t s = 0; s < program.steps.size(); ++s) place_step(s);
  }

  FusedCode code() && { return std::move(code_); }
  // Bytes of the cache that a tile takes: scratch memory, and the memory of tensors.
  int64_t footprint() const {
    int64_t bytes = code_.scratch;
    for (auto& p : code_.places)
      if (p.tensor != FusedCode::kNowhere && !p.one_value)
        bytes += p.size * code_.tiles.tile_elements();
    return bytes;
  }

 private:
  int64_t size_of_tensor(size_t t) const {
    return static_cast<int64_t>(sdk::dtype_size(tensors_[t]->dtype));
  }
  uint32_t add(const FusedCode::Place& place) {
    code_.places.push_back(place);
    return static_cast<uint32_t>(code_.places.size() - 1);
  }
  uint32_t add_in_memory(size_t tensor, bool one_value) {
    return add({size_of_tensor(tensor), static_cast<uint32_t>(tensor), 0, one_value, true});
  }
  uint32_t add_in_scratch(int64_t size, bool one_value, bool lasts) {
    const int64_t bytes = size * (one_value ? 1 : code_.tiles.tile_elements());
    const int64_t offset = code_.scratch;
    code_.scratch += (bytes + kLine - 1) / kLine * kLine;
    return add({size, FusedCode::kNowhere, offset, one_value, lasts});
  }

  void place_input(size_t i) {
    const size_t tensor = request_.num_outputs() + i;
    const Access access = code_.tiles.access(tensor);
    if (access != Access::scattered) {
      place_of_input_.push_back(add_in_memory(tensor, access == Access::single));
      return;
    }
    place_of_input_.push_back(add_in_scratch(size_of_tensor(tensor), false, true));
    code_.loads.push_back({static_cast<uint32_t>(tensor), place_of_input_.back()});
  }

  uint32_t place_of(const FusedOperand& operand) const {
    if (operand.kind == FusedOperand::absent) return FusedCode::kNowhere;
    return operand.kind == FusedOperand::input ? place_of_input_[operand.index]
                                               : code_.steps[operand.index].out;
  }

  void place_step(size_t s) {
    const FusedStep& step = program_.steps[s];
    FusedCode::Step code{{}, FusedCode::kNowhere, true};
    for (size_t k = 0; k < std::size(code.in); ++k) {
      code.in[k] = place_of(step.operands[k]);
      if (code.in[k] != FusedCode::kNowhere)
        code.one_value = code.one_value && code_.places[code.in[k]].one_value;
    }
    const uint32_t output = output_of_[s];
    const auto size = static_cast<int64_t>(sdk::dtype_size(step.dtype));
    if (output != FusedCode::kNowhere) {
      code.one_value = false;
      code.out = may_write_at_once(output, s) ? add_in_memory(output, false)
                                              : add_in_scratch(size, false, true);
      if (code_.places[code.out].tensor == FusedCode::kNowhere)
        code_.stores.push_back({output, code.out});
    } else if (code.one_value) {
      code.out = add_in_scratch(size, true, true);
    } else {
      code.out = reused_place(s, code, size);
      if (code.out == FusedCode::kNowhere) code.out = add_in_scratch(size, false, false);
    }
    code_.steps.push_back(code);
    release_operands(s, code.out);
  }

  // Whether the step may write the output's memory while later steps run: not where that memory is
  // an input's and one of them reads inputs where they lie.
  bool may_write_at_once(uint32_t output, size_t s) const {
    if (code_.tiles.access(output) != Access::line) return false;
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
    for (size_t k = 0; over_operands && k < std::size(code.in); ++k)
      if (ends_at(s, step.operands[k]) && code_.places[code.in[k]].size == size) return code.in[k];
    const auto found = std::find_if(free_.begin(), free_.end(), [&](uint32_t place) {
      return code_.places[place].size == size;
    });
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
  std::vector<const tn_tensor_desc*> tensors_;
  FusedCode code_;
  std::vector<size_t> last_use_;     // the last step that reads the result of this one
  std::vector<uint32_t> output_of_;  // the output that a step makes
  std::vector<uint32_t> place_of_input_, free_;
};

}  // namespace

FusedCode FusedCode::of(const sdk::FusedRequest& program, const Request& request) {
  for (int64_t elements = kLargestTile;; elements /= 2) {
    Compiler compiler(program, request, elements);
    if (compiler.footprint() <= kScratch || elements == kSmallestTile)
      return std::move(compiler).code();
  }
}

}  // namespace tenon::cpu
