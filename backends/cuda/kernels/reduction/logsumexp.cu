// log(sum(exp(x))) over dimensions, in one pass.
#include "kernels/reduction/reduce.h"
#include "kernels/reduction/reducers.h"

namespace tenon::cuda {
namespace {

tn_plan* make(tn_device* device, const Request& request) {
  return with_float(request.input(0).dtype,
                    [&]<class T>(T) { return reduction_plan<LogSumExp<T>>(*device, request); });
}

const sdk::Kernel logsumexps({"logsumexp"}, make);

}  // namespace
}  // namespace tenon::cuda
