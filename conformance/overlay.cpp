#include <algorithm>
#include <vector>

#include <tenon/conformance/case.h>
#include <tenon/conformance/overlay.h>
#include <tenon/conformance/report.h>
#include <tenon/core/tensor.h>
#include <tenon/plugins/host/backend.h>
#include <tenon/plugins/host/registry.h>

namespace tenon::conformance {

namespace {

constexpr const char* kUnknown = "tenon_conformance::nothing";

// The text with another name wherever it has that of the unknown operator.
std::string about(std::string text, const std::string& op) {
  const std::string_view unknown = kUnknown;
  for (size_t at = 0; (at = text.find(unknown, at)) != text.npos; at += op.size())
    text.replace(at, unknown.size(), op);
  return text;
}

plugins::Backend* overlay_of(const Subject& subject) {
  for (auto* overlay : plugins::registry().overlays(subject.device.type()))
    if (overlay->name() == subject.overlay) return overlay;
  return nullptr;
}

}  // namespace

std::shared_ptr<const std::set<std::string>> refusals_of_unknown(const Subject& subject) {
  auto all = std::make_shared<std::set<std::string>>();
  plugins::Backend* const overlay = subject.overlay.empty() ? nullptr : overlay_of(subject);
  if (!overlay) return all;
  tn_device* const device = overlay->open_device(static_cast<uint32_t>(subject.device.index()));
  for (DType dtype : kEvery) {
    tn_tensor_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = static_cast<tn_dtype>(dtype);
    desc.rank = 1;
    desc.shape[0] = 64;
    desc.strides[0] = 1;
    const tn_tensor_desc* const tensors[] = {&desc};
    tn_op_request request{};
    request.struct_size = sizeof request;
    request.op = kUnknown;
    request.inputs = request.outputs = tensors;
    request.num_inputs = request.num_outputs = 1;
    tn_error* const error = overlay->api().supports(device, &request);
    if (!error) continue;
    all->insert(plugins::take_message(error));
  }
  return all;
}

std::string words_of_overlay(const Subject& subject, const std::string& reasons) {
  const std::string begins = "\n  " + subject.overlay + ": ";
  const size_t at = reasons.rfind(begins);
  if (at == reasons.npos) return "";
  const size_t begin = at + begins.size();
  return reasons.substr(begin, reasons.find('\n', begin) - begin);
}

bool refuses_what_it_has(const Subject& subject, const std::string& op, const std::string& words) {
  const auto& unknown = *subject.refusals_of_unknown;
  return !words.empty() && std::none_of(unknown.begin(), unknown.end(),
                                        [&](auto& refusal) { return about(refusal, op) == words; });
}

namespace {
uint64_t runs_in(const DispatchStats& stats, const std::string& overlay) {
  uint64_t runs = 0;
  for (auto& r : stats.runs)
    if (r.owner == overlay) runs += r.runs;
  return runs;
}
}  // namespace

uint64_t runs_of_overlay(const Subject& subject) {
  synchronize();  // what is still queued is counted, too
  return runs_in(dispatch_stats(), subject.overlay);
}

void OverlayNotes::add(const OverlayNotes& other) {
  for (auto& [op, count] : other.plans) plans[op] += count;
  for (auto& [op, reason] : other.refused) refused[op] = reason;
}

OverlayWatch::OverlayWatch(const Subject& subject) : subject_(subject) {
  if (!subject.overlay.empty()) count_dispatch();
}

void OverlayWatch::note(const DispatchStats& stats) {
  for (auto& made : stats.plans)
    if (made.owner == subject_.overlay) notes_.plans[made.op] += made.count;
  for (auto& refused : stats.refused) {
    const std::string words = words_of_overlay(subject_, refused.reason);
    if (words.empty()) continue;
    reasons_[refused.op] = words;
    if (refuses_what_it_has(subject_, refused.op, words)) notes_.refused[refused.op] = words;
  }
}

// That for the operator of the check, or for one that has run instead.
std::string OverlayWatch::reason_for(const Check& check, const DispatchStats& stats) const {
  std::vector<std::string> ops = {check.op};
  for (auto& run : stats.runs) ops.push_back(run.op);
  for (auto& op : ops)
    if (const auto found = reasons_.find(op); found != reasons_.end())
      return "; " + op + ": " + found->second;
  return "";
}

// What passes without a run of the overlay's plans was computed by the plugin below it.
// The checks of the joint ask the overlay themselves.
Result OverlayWatch::result_of(const Check& check) {
  notes_ = {};
  if (subject_.overlay.empty() || check.section == "joint") return conformance::result_of(check);
  Check whole = check;
  bool used = false;
  DispatchStats stats;
  whole.run = [&] {
    reset_dispatch_stats();
    check.run();
    used = runs_of_overlay(subject_) > 0;
    stats = dispatch_stats();
  };
  Result result = conformance::result_of(whole);
  note(dispatch_stats());
  if (result.status != Status::passed || used) return result;
  result.status = Status::not_offered;
  result.detail = std::string(kNoPlanOfOverlay) + reason_for(check, stats);
  return result;
}

}  // namespace tenon::conformance
