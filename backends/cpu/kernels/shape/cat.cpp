#include <utility>
#include <vector>

#include "kernels/shape/part_copy.h"

namespace tenon::cpu {
namespace {

tn_plan* make_cat(tn_device*, const Request& request) {
  std::vector<PartCopy> copies;
  uint64_t cost = 1;
  for (auto& part : sdk::cat_parts(request)) {
    copies.push_back({part, StridedCopy(part.to, request.input(part.input))});
    cost += copies.back().copy.cost_ns();
  }
  auto run = [copies = std::move(copies)](const tn_run& run) {
    for (auto& copy : copies) copy.run(run);
  };
  return sdk::make_plan(std::move(run), {0, cost});
}
const sdk::Kernel cats({"cat"}, make_cat);

}  // namespace
}  // namespace tenon::cpu
