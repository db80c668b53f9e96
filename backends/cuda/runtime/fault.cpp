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

// Pinned memory comes and goes by calls that wait for the device, and graphs are recorded while it
// works. So records are cut from pages, which stay, and are used again.
struct Records {
  std::mutex mutex;
  std::vector<Fault*> unused;
  size_t total = 0;
};
// Never destroyed, because detached threads may still use some while the process ends.
Records& records() {
  static auto& r = *new Records;
  return r;
}

// The lock is held.
void add_page(Records& r) {
  constexpr size_t kPage = 4096, kRecord = 64;
  r.unused.reserve(r.total + kPage / kRecord);
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, kPage, cudaHostAllocPortable | cudaHostAllocMapped),
        "cudaHostAlloc");
  r.total += kPage / kRecord;
  for (size_t at = 0; at < kPage; at += kRecord)
    r.unused.push_back(reinterpret_cast<Fault*>(static_cast<char*>(memory) + at));
}
static_assert(sizeof(Fault) <= 64);

}  // namespace

PinnedFault::PinnedFault() {
  Records& r = records();
  std::lock_guard lock(r.mutex);
  if (r.unused.empty()) add_page(r);
  fault_ = r.unused.back();
  r.unused.pop_back();
  std::memset(fault_, 0, sizeof(Fault));
}

PinnedFault::~PinnedFault() {
  Records& r = records();
  std::lock_guard lock(r.mutex);
  r.unused.push_back(fault_);
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
  const std::string message = label ? sdk::text("label {} in row {} lies outside [0, {})",
                                                fault.value, fault.position, fault.bound)
                                    : sdk::text("index {} at position {} is outside [0, {})",
                                                fault.value, fault.position, fault.bound);
  fault.site = FaultSite::none;
  *const_cast<volatile int32_t*>(&fault.claimed) = 0;
  throw sdk::Error(TN_CODE_OUT_OF_RANGE, message, {{"op", op}});
}

}  // namespace tenon::cuda
