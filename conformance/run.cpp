#include <algorithm>

#include <tenon/conformance/compare.h>
#include <tenon/conformance/run.h>
#include <tenon/conformance/values.h>
#include <tenon/core/autograd/autograd.h>

namespace tenon::conformance {

json parsed(const Variant& variant) {
  std::string text = variant.args.empty() ? "{}" : variant.args;
  std::replace(text.begin(), text.end(), '\'', '"');
  return json::parse(text);
}

bool is_fixed(Values kind) {
  return kind == Values::flags || kind == Values::index || kind == Values::constant;
}

Values kind_of(const Line& line, const In& in) {
  return in.values == Values::any ? line.values : in.values;
}

// The cpu's halves are compared with its f64, unless they are only moved; those that the cpu does
// not have cannot be compared in another way.
bool compared_in_f64(const Line& line, DType dtype, const Subject& subject) {
  if (!contains(kHalves, dtype)) return false;
  if (!contains(line.types, dtype)) return true;
  return subject.device.type() == "cpu" && line.tolerance.f16 > 0;
}

std::string Run::describe() const {
  std::string text = variant.args + (variant.args.empty() ? "of" : " of");
  for (size_t i = 0; i < variant.in.size(); ++i)
    text += (i ? ", " : " ") + (kind_of(*line, variant.in[i]) == Values::absent
                                    ? "nothing"
                                    : variant.in[i].shape.str() + " " + layout[i]->name);
  return text;
}

Sides inputs_of(const Run& run, const Subject& subject, bool ordinary, bool wide) {
  Random random(*run.line, run.seed);
  Sides sides;
  for (size_t i = 0; i < run.variant.in.size(); ++i) {
    const In& in = run.variant.in[i];
    Values kind = kind_of(*run.line, in);
    if (kind == Values::absent) {
      sides.found.emplace_back();
      sides.expected.emplace_back();
      continue;
    }
    if (ordinary && (kind == Values::any || kind == Values::sums)) kind = Values::ordinary;
    const Layout& layout = *run.layout[i];
    const Tensor whole =
        random.values(in, kind, run.dtype, layout.whole(in.shape)).to(subject.reference);
    sides.found.push_back(layout.view(whole.to(subject.device), in.shape));
    const Tensor here = layout.view(whole, in.shape).contiguous();
    sides.expected.push_back(wide && is_floating_point(here.dtype()) ? here.to(f64) : here);
  }
  return sides;
}

namespace {

bool differentiable(const Run& run, size_t i) {
  const Values kind = kind_of(*run.line, run.variant.in[i]);
  return kind != Values::absent && !is_fixed(kind);
}

}  // namespace

List gradients(const Run& run, const json& args, List in) {
  List leaves;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!differentiable(run, i)) continue;
    in[i] = in[i].detach().requires_grad_();
    leaves.push_back(in[i]);
  }
  if (leaves.empty()) return {};
  for (const Tensor& y : run.line->call(args, in)) {
    if (!y.requires_grad()) continue;
    DeviceGuard on_cpu("cpu");
    const Tensor seed = sample(y.shape(), 0.9).to(y.dtype()).to(y.device());
    return grad(std::span(&y, 1), leaves, std::span(&seed, 1), {.allow_unused = true});
  }
  return {};
}

void compare_sides(const Run& run, const Subject& subject, bool wide, bool with_gradients) {
  const json args = parsed(run.variant);
  const double allowed = run.line->tolerance.of(run.dtype);
  const Sides sides = inputs_of(run, subject, wide, wide);
  const List found = run.line->call(args, sides.found),
             expected = run.line->call(args, sides.expected);
  if (found.size() != expected.size()) throw Mismatch("another number of results");
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string which = "output " + std::to_string(i);
    if (found[i].device() != subject.device)
      throw Mismatch(which + " is on " + found[i].device().str());
    require_same(
        found[i],
        wide && is_floating_point(expected[i].dtype()) ? expected[i].to(run.dtype) : expected[i],
        allowed, which);
  }
  if (!with_gradients) return;
  const Sides ordinary = inputs_of(run, subject, true, wide);
  const List there = gradients(run, args, ordinary.found),
             here = gradients(run, args, ordinary.expected);
  if (there.size() != here.size()) throw Mismatch("gradients on one device only");
  for (size_t i = 0; i < here.size(); ++i) {
    const std::string which = "gradient " + std::to_string(i);
    if (there[i].defined() != here[i].defined()) throw Mismatch(which + " is on one device only");
    if (here[i].defined()) require_same(there[i], here[i], 4 * allowed, which);
  }
}

}  // namespace tenon::conformance
