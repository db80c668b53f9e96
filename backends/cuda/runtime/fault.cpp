#include "runtime/fault.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <tenon/plugins/sdk/sdk.h>

#include "runtime/check.h"

namespace tenon::cuda {

namespace {
const char* operator_of(FaultSite site) {
  switch (site) {
    case FaultSite::cross_entropy:
      return "cross_entropy";
    case FaultSite::ctc_loss:
      return "ctc_loss";
    case FaultSite::embedding:
      return "embedding";
    case FaultSite::index_select:
      return "index_select";
    case FaultSite::scatter:
      return "scatter";
    case FaultSite::scatter_reduce:
      return "scatter_reduce";
    default:
      return "gather";
  }
}
}  // namespace

PinnedFault::PinnedFault() {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, sizeof(Fault), cudaHostAllocPortable | cudaHostAllocMapped),
        "cudaHostAlloc");
  std::memset(memory, 0, sizeof(Fault));
  fault_ = static_cast<Fault*>(memory);
}

PinnedFault::~PinnedFault() {
  if (cudaFreeHost(fault_) != cudaSuccess) cudaGetLastError();
}

void FaultList::add_graph(const std::shared_ptr<PinnedFault>& fault) {
  std::lock_guard lock(mutex_);
  std::erase_if(graphs_, [](auto& graph) { return graph.expired(); });
  const bool known = std::any_of(graphs_.begin(), graphs_.end(),
                                 [&](auto& graph) { return graph.lock() == fault; });
  if (!known) graphs_.push_back(fault);
}

void FaultList::throw_filed() {
  std::lock_guard lock(mutex_);
  throw_fault(*own_->get());
  for (auto& graph : graphs_)
    if (auto fault = graph.lock()) throw_fault(*fault->get());
}

void throw_fault(Fault& fault) {
  const FaultSite site = *const_cast<volatile FaultSite*>(&fault.site);
  if (site == FaultSite::none) return;
  const std::string op = operator_of(site);
  const bool label = site == FaultSite::cross_entropy || site == FaultSite::ctc_loss;
  const std::string message = label ? sdk::text("{}: label {} in row {} lies outside [0, {})", op,
                                                fault.value, fault.position, fault.bound)
                                    : sdk::text("{}: index {} at position {} is outside [0, {})",
                                                op, fault.value, fault.position, fault.bound);
  fault.site = FaultSite::none;
  *const_cast<volatile int32_t*>(&fault.claimed) = 0;
  throw sdk::Error(TN_CODE_OUT_OF_RANGE, message, {{"op", op}});
}

}  // namespace tenon::cuda
