#include <tenon/plugins/sdk/requests/shape.h>

#include "kernels/shape/copy.h"

namespace tenon::cuda {
namespace {

tn_plan* make_cat(tn_device*, const Request& request) {
  const auto parts = sdk::cat_parts(request);
  if (parts.empty()) return empty_plan();
  std::vector<StridedCopy> copies;
  for (auto& part : parts) copies.emplace_back(part.to, request.input(part.input));
  return make_plan([parts, copies = std::move(copies)](const tn_run& run) {
    for (size_t i = 0; i < parts.size(); ++i)
      copies[i].run(run.stream, parts[i].destination(run), parts[i].source(run));
  });
}
const sdk::Kernel cats({"cat"}, make_cat);

}  // namespace
}  // namespace tenon::cuda
