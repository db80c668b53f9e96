#include <tenon/plugins/sdk/binary_formulas.h>

#include "kernels/pointwise/functions.h"

namespace tenon::cuda {
namespace {

const sdk::Kernel nan_to_num({"nan_to_num"}, [](tn_device*, const Request& request) {
  return make_numbered<formulas::NanToNum>(request, 3);
});

}  // namespace
}  // namespace tenon::cuda
