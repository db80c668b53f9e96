#include <fmt/core.h>

#include <tenon/core/base/per_thread.h>
#include <tenon/core/dispatch/detour.h>
#include <tenon/core/format.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {

thread_local constinit const Detour* current_detour TENON_FAST_TLS = nullptr;

std::string text_of(const Tensor& t) {
  return fmt::format("{} {}", impl_of(t).dtype, impl_of(t).shape);
}

using observe::DetourKind;

// What happens to the call, and what of the call that is.
struct Words {
  const char *done, *noun;
};
Words words_of(DetourKind kind) {
  switch (kind) {
    case DetourKind::decomposed:
      return {"decomposed", "decomposition"};
    case DetourKind::widened:
      return {"computed in f32", "computation in f32"};
    case DetourKind::on_cpu:
      return {"computed on the CPU", "computation on the CPU"};
    case DetourKind::hidden_copy:
      return {"copied for it", "copy of a tensor"};
    case DetourKind::conversion:
    case DetourKind::refused:  // which is no detour
      break;
  }
  return {"converted for it", "conversion of its inputs to one type"};
}

}  // namespace

std::string signature_of(const Call& call) {
  std::string text;
  for (auto* t : call.inputs)
    if (t) text += (text.empty() ? "" : ", ") + text_of(*t);
  if (text.empty() && call.out) text = "-> " + text_of(*call.out);
  if (text.empty() && call.shape) text = "-> " + call.shape->str();
  return text;
}

Detour::Detour(DetourKind kind, const Call& call, Device device, const std::string& reason,
               const Tensor* copied)
    : kind_(kind),
      call_(&call),
      device_(device),
      reason_(reason),
      copied_(copied),
      bytes_(copied ? describe(impl_of(*copied)).bytes() : 0),
      outer_(current_detour) {
  current_detour = this;
  if (observe::watched()) [[unlikely]]
    announce();
}

namespace {
const std::string no_reason;
}

Detour::Detour(const char* function, const Tensor& copied)
    : kind_(DetourKind::hidden_copy),
      function_(function),
      device_(impl_of(copied).device),
      reason_(no_reason),
      copied_(&copied),
      bytes_(describe(impl_of(copied)).bytes()),
      outer_(current_detour) {
  current_detour = this;
  if (observe::watched()) [[unlikely]]
    announce();
}

Detour::~Detour() {
  current_detour = outer_;
  if (observe::watched()) [[unlikely]]
    add();
}

tracing::Detour Detour::seen() const {
  return {name(),
          words_of(kind_).done,
          device_,
          copied_ ? text_of(*copied_) : signature_of(*call_),
          outer_ ? outer_->outermost() : "",
          reason_,
          bytes_};
}

const char* Detour::name() const { return function_ ? function_ : call_->op.name; }
const char* Detour::outermost() const { return outer_ ? outer_->outermost() : name(); }

void Detour::announce() {
  began_ = tracing::Clock::now();
  try {
    if (observe::watched_by(observe::kTrace)) tracing::announce_detour(seen());
    if (kind_ == DetourKind::decomposed || kind_ == DetourKind::widened) part_.emplace(name());
  } catch (const std::bad_alloc&) {  // it is not announced
  }
}

void Detour::add() {
  part_.reset();
  if (!observe::watched_by(observe::kCount) && !observe::watched_by(observe::kTrace)) return;
  try {
    const tracing::Detour all = seen();
    if (observe::watched_by(observe::kCount)) observe::count_detour(kind_, all);
    if (observe::watched_by(observe::kTrace)) tracing::add_detour(all, began_);
  } catch (const std::bad_alloc&) {  // it is not counted
  }
}

std::string Detour::text() const {
  std::string call = name();
  const Tensor* const only[] = {copied_};
  const char* between = ": ";
  for (auto* t : call_ ? call_->inputs : Inputs(only)) {
    if (!t) continue;
    call += between + impl_of(*t).shape.str();
    between = ", ";
  }
  const char* const noun = words_of(kind_).noun;
  return outer_ ? fmt::format("{}{}, whose {} needs ", outer_->text(), call, noun)
                : fmt::format("{} on {}: its {} needs ", call, device_, noun);
}

std::string Detour::whole() { return current_detour ? current_detour->text() : ""; }

std::string Detour::refusals_beside(const std::string& reasons) const {
  std::string text = outer_ ? outer_->refusals_beside(reasons) : "";
  if (reason_.empty() || reason_ == reasons) return text;
  return fmt::format("{}\nBefore that, {} itself was refused:{}", text, name(), reason_);
}

std::string Detour::refusals(const std::string& reasons) {
  return current_detour ? current_detour->refusals_beside(reasons) : "";
}

}  // namespace tenon
