#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <tenon/conformance/bytes.h>
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

std::string with_extents(const Variant& variant, const std::function<int64_t(int64_t)>& changed) {
  json args = parsed(variant);
  for (const char* name : {"shape", "normalized_shape", "left", "right"})
    if (auto found = args.find(name); found != args.end() && found->is_array())
      for (auto& n : *found)
        if (n.is_number_integer() && n.get<int64_t>() > 1) n = changed(n.get<int64_t>());
  return args.empty() ? "" : args.dump();
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
  if (alias == Alias::same) text += ", one tensor";
  if (alias == Alias::overlapping) text += ", overlapping";
  if (awkward) text += ", with NaN and infinities";
  return text;
}

namespace {

// The values that an input is made of: those of its line, or more or less awkward ones.
Values kind_in(const Run& run, const In& in, bool ordinary) {
  const Values kind = kind_of(*run.line, in);
  if (ordinary && (kind == Values::any || kind == Values::sums)) return Values::ordinary;
  if (!ordinary && run.awkward && (kind == Values::ordinary || kind == Values::near_one))
    return Values::sums;
  return kind;
}

bool shares_memory(const Run& run, size_t i) {
  const In &first = run.variant.in[0], &in = run.variant.in[i];
  return run.alias != Alias::none && in.shape == first.shape && in.bound == first.bound &&
         kind_of(*run.line, in) == kind_of(*run.line, first);
}

// The memory that inputs share, on the reference device and on the subject's.
struct Shared {
  Tensor here, there;
  // One that begins `offset` elements behind the first.
  static Tensor part(const Tensor& whole, size_t offset, const Shape& shape) {
    return whole.narrow(0, static_cast<int64_t>(offset), shape.numel()).view(shape);
  }
};

}  // namespace

Sides inputs_of(const Run& run, const Subject& subject, bool ordinary, bool wide) {
  Random random(*run.line, run.seed);
  Sides sides;
  Shared shared;
  const auto add = [&](const Tensor& there, const Tensor& here) {
    sides.found.push_back(there);
    sides.expected.push_back(from_reference(subject, [&] {
      const Tensor expected = here.contiguous();
      return wide && is_floating_point(here.dtype()) ? expected.to(f64) : expected;
    }));
  };
  const auto values = [&](const In& in, Values kind, const Shape& shape) {
    return from_reference(
        subject, [&] { return random.values(in, kind, run.dtype, shape, subject.reference); });
  };
  for (size_t i = 0; i < run.variant.in.size(); ++i) {
    const In& in = run.variant.in[i];
    const Values kind = kind_in(run, in, ordinary);
    if (kind == Values::absent) {
      sides.found.emplace_back();
      sides.expected.emplace_back();
    } else if (shares_memory(run, i)) {
      if (i == 0) {
        const auto spare = static_cast<int64_t>(run.variant.in.size());
        shared.here = values(in, kind, {in.shape.numel() + spare});
        shared.there = shared.here.to(subject.device);
      }
      const size_t offset = run.alias == Alias::same ? 0 : i;
      add(i > 0 && run.alias == Alias::same ? sides.found[0]
                                            : Shared::part(shared.there, offset, in.shape),
          Shared::part(shared.here, offset, in.shape));
    } else {
      const Layout& layout = *run.layout[i];
      const Tensor whole = values(in, kind, layout.whole(in.shape));
      add(layout.view(whole.to(subject.device), in.shape), layout.view(whole, in.shape));
    }
  }
  return sides;
}

namespace {

bool differentiable(const Run& run, size_t i) {
  const Values kind = kind_of(*run.line, run.variant.in[i]);
  return kind != Values::absent && !is_fixed(kind);
}

}  // namespace

Answer answer_of(const std::function<List()>& call) {
  Answer answer;
  const auto hear = [&](const auto& f) {
    try {
      f();
    } catch (const UnsupportedError&) {
      throw;
    } catch (const Error& e) {
      if (answer.refusal.empty()) answer.refusal = e.what();
    }
  };
  hear([&] { answer.results = call(); });
  for (auto& y : answer.results)
    if (y.defined()) hear([&] { y.wait(); });
  return answer;
}

void require_elements(const List& outputs, const List& gradients) {
  const auto has_elements = [](const Tensor& x) { return x.defined() && x.numel() > 0; };
  if (std::none_of(outputs.begin(), outputs.end(), has_elements) &&
      std::none_of(gradients.begin(), gradients.end(), has_elements))
    throw Skipped();
}

List gradients(const Run& run, const Subject& subject, const json& args, List in) {
  List leaves;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!differentiable(run, i)) continue;
    in[i] = in[i].detach().requires_grad_();
    leaves.push_back(in[i]);
  }
  if (leaves.empty()) return {};
  for (const Tensor& y : run.line->call(args, in)) {
    if (!y.requires_grad()) continue;
    DeviceGuard guard(subject.reference);
    // The same on both sides, of which one may compute in f64.
    const Tensor seed = sample(y.shape(), 0.9).to(run.dtype).to(y.dtype()).to(y.device());
    return grad(std::span(&y, 1), leaves, std::span(&seed, 1), {.allow_unused = true});
  }
  return {};
}

namespace {

// Sums that end near 0 are as exact as their terms are large, in whatever order they are added.
double scale_of(const Run& run, const Tensor& expected) {
  const Line& line = *run.line;
  const bool sums = line.tolerance.f32 > kRounding.f32 && line.values != Values::any;
  if (!sums || !is_floating_point(expected.dtype())) return 1;
  double squares = 0, count = 0;
  for (double v : expected.to_vector<double>())
    if (std::isfinite(v)) squares += v * v, ++count;
  return std::max(1.0, std::sqrt(squares / std::max(count, 1.0)));
}

// Whether a sum that is not finite is infinite or NaN depends on how it is computed.
Tensor without_infinities(const Tensor& x) {
  auto values = x.to_vector<double>();
  for (double& v : values)
    if (!std::isfinite(v)) v = std::nan("");
  return tensor(values, x.shape());
}

// An operator that repeats values changes none of them, but adds up their gradients, often hundreds
// that cancel in part, in whatever order.
double allowed_in_gradients(const Run& run) {
  const double allowed = run.line->tolerance.of(run.dtype);
  return 8 * (allowed > 0 ? allowed : kSums.of(run.dtype));
}

// Both are on the reference device.
void compare_one(const Run& run, const Tensor& found, const Tensor& expected, double allowed,
                 const std::string& what) {
  const double scale = scale_of(run, expected);
  if (run.awkward && found.dtype() == expected.dtype() && is_floating_point(found.dtype()))
    require_same(without_infinities(found), without_infinities(expected), allowed, what, scale);
  else
    require_same(found, expected, allowed, what, scale);
}

// Returns those of the reference device.
List compare_gradients(const Run& run, const Subject& subject, bool wide) {
  const json args = parsed(run.variant);
  const Sides ordinary = inputs_of(run, subject, true, wide);
  List there = gradients(run, subject, args, ordinary.found),
       here = from_reference(subject,
                             [&] { return gradients(run, subject, args, ordinary.expected); });
  if (there.size() != here.size()) throw Mismatch("gradients on one device only");
  for (size_t i = 0; i < here.size(); ++i) {
    const std::string which = fmt::format("gradient {}", i);
    if (there[i].defined() != here[i].defined()) throw Mismatch(which + " is on one device only");
    if (!here[i].defined()) continue;
    compare_one(run, copied_to(there[i], subject.reference), wide ? here[i].to(run.dtype) : here[i],
                allowed_in_gradients(run), which);
  }
  return here;
}

}  // namespace

void compare_results(const Run& run, const Subject& subject, bool wide, bool with_gradients,
                     const List& found, const List& expected) {
  const double allowed = run.line->tolerance.of(run.dtype);
  if (found.size() != expected.size()) throw Mismatch("another number of results");
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string which = fmt::format("output {}", i);
    if (found[i].device() != subject.device)
      throw Mismatch(fmt::format("{} is on {}", which, found[i].device().str()));
    const bool narrowed = wide && is_floating_point(expected[i].dtype());
    compare_one(run, copied_to(found[i], subject.reference),
                narrowed ? expected[i].to(run.dtype) : expected[i], allowed, which);
  }
  require_elements(expected, with_gradients ? compare_gradients(run, subject, wide) : List());
}

void compare_sides(const Run& run, const Subject& subject, bool wide, bool with_gradients) {
  const json args = parsed(run.variant);
  const Sides sides = inputs_of(run, subject, wide, wide);
  const List found = run.line->call(args, sides.found),
             expected =
                 from_reference(subject, [&] { return run.line->call(args, sides.expected); });
  compare_results(run, subject, wide, with_gradients, found, expected);
}

}  // namespace tenon::conformance
