// Tolerances: in f32, and in the half type that a case is for, those of the case; in f64 1e-9
// relative, and 1e-9 of the largest value absolute; in other halves 8 times their epsilon so.
#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/core.h>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/case_files.h>
#include <tenon/conformance/compare.h>
#include <tenon/conformance/driver.h>
#include <tenon/conformance/findings.h>
#include <tenon/conformance/layout.h>
#include <tenon/conformance/run.h>
#include <tenon/core/autograd/autograd.h>

namespace tenon::conformance {

namespace {

struct CaseRun {
  const Line* line;
  std::shared_ptr<const ReferenceCase> reference;
  DType dtype;
  size_t layout;         // of the first input, in layouts(false); 0: contiguous throughout
  bool rounded = false;  // to a half type that the case is not for
};

struct Tolerances {
  double relative, absolute;
};

double largest_of(const Tensor& x) {
  double largest = 1;
  for (double v : x.to_vector<double>())
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  return largest;
}

Tolerances tolerances_of(const CaseRun& run, const Tensor& expected) {
  if (run.dtype == f64) return {1e-9, 1e-9 * largest_of(expected)};
  if (!run.rounded) return {run.reference->rtol, run.reference->atol};
  const double allowed = std::ldexp(8.0, run.dtype == f16 ? -10 : -7);
  return {allowed, allowed * largest_of(expected)};
}

void compare(const Tensor& found, const Tensor& expected, const CaseRun& run,
             const Subject& subject, const std::string& what) {
  const DType real = run.line->results_in_f64 ? f64 : run.dtype;
  require_dtype(found, is_floating_point(expected.dtype()) ? real : expected.dtype(), what);
  const Tolerances allowed = tolerances_of(run, expected);
  require_close(copied_to(found, subject.reference), expected, allowed.relative, allowed.absolute,
                what);
}

// A value that lies in memory as `layout` says. It is laid out on the reference device, so that the
// device needs no operator for it.
Tensor laid_out(const Tensor& x, const Layout& layout, const Subject& subject) {
  const Tensor whole =
      full(layout.whole(x.shape()), 1, {.dtype = x.dtype(), .device = subject.reference});
  layout.view(whole, x.shape()).copy_(x);
  return layout.view(whole.to(subject.device), x.shape());
}

// Contiguous, on the reference device.
Tensor in_dtype(const Tensor& x, DType dtype) {
  return is_floating_point(x.dtype()) ? x.to(dtype) : x;
}

bool takes_gradient(const ReferenceCase& c, size_t i) {
  return i < c.gin.size() && c.gin[i].defined();
}

List inputs_of(const CaseRun& run, const Subject& subject) {
  const ReferenceCase& c = *run.reference;
  const auto& all = layouts(false);
  List in;
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (!c.in[i].defined()) {  // an optional input that was not given
      in.emplace_back();
      continue;
    }
    const Layout& layout = all[run.layout == 0 ? 0 : 1 + (run.layout + i) % (all.size() - 1)];
    in.push_back(laid_out(in_dtype(c.in[i], run.dtype), layout, subject).detach());
    if (takes_gradient(c, i)) in.back().requires_grad_();
  }
  return in;
}

// What is differentiated: outputs, the gradients that come to them, and inputs.
struct Differentiated {
  List sources, upstream, wanted;

  Differentiated(const ReferenceCase& c, const List& in, const List& out,
                 const std::function<Tensor(const Tensor&)>& as_upstream) {
    for (size_t i = 0; i < in.size(); ++i)
      if (takes_gradient(c, i)) wanted.push_back(in[i]);
    for (size_t i = 0; i < out.size() && i < c.gout.size(); ++i) {
      if (!c.gout[i].defined()) continue;
      sources.push_back(out[i]);
      upstream.push_back(as_upstream(c.gout[i]));
    }
  }
  List gradients(bool create_graph) const {
    return grad(sources, wanted, upstream, {.retain_graph = true, .create_graph = create_graph});
  }
};

struct Expected {
  List out, gradients;
};

// Those of the file. Of a half type that the case is not for: what the reference device, which is
// compared with the file itself, gives in f64 for the rounded inputs.
Expected expected_of(const CaseRun& run, const Subject& subject) {
  const ReferenceCase& c = *run.reference;
  Expected expected;
  if (!run.rounded) {
    expected.out = c.out;
    for (auto& g : c.gin)
      if (g.defined()) expected.gradients.push_back(g);
    return expected;
  }
  return from_reference(subject, [&] {
    const DeviceGuard guard(subject.reference);
    const auto rounded = [&](const Tensor& x) { return in_dtype(in_dtype(x, run.dtype), f64); };
    List in;
    for (size_t i = 0; i < c.in.size(); ++i) {
      in.push_back(c.in[i].defined() ? rounded(c.in[i]).detach() : Tensor());
      if (takes_gradient(c, i)) in.back().requires_grad_();
    }
    expected.out = run.line->call(c.args, in);
    const Differentiated differentiated(c, in, expected.out, rounded);
    if (!differentiated.wanted.empty()) expected.gradients = differentiated.gradients(false);
    // Numbers beyond the range of the half type are infinite there.
    for (auto* list : {&expected.out, &expected.gradients})
      for (auto& y : *list) y = in_dtype(y.detach(), run.dtype);
    return expected;
  });
}

// By the fused backward operators, by the rules that can be differentiated again, and by
// backward(), which adds up in grad() what comes from each output.
void compare_gradients(const CaseRun& run, const Subject& subject, const Differentiated& d,
                       const List& expected, Findings& findings) {
  const auto compare_all = [&](const List& found, const char* how) {
    for (size_t i = 0; i < found.size(); ++i)
      findings.look([&] {
        compare(found[i], expected[i], run, subject, fmt::format("gradient {}{}", i, how));
      });
  };
  findings.look([&] { compare_all(d.gradients(false), ""); });
  findings.look([&] { compare_all(d.gradients(true), ", composed"); });
  findings.look([&] {
    for (size_t i = 0; i < d.sources.size(); ++i)
      d.sources[i].backward(d.upstream[i], {.retain_graph = i + 1 < d.sources.size()});
    List found;
    for (auto& x : d.wanted) found.push_back(x.grad());
    compare_all(found, ", by backward()");
  });
}

// An operator leaves its inputs as they are, bit by bit.
void compare_inputs(const CaseRun& run, const List& in, Findings& findings) {
  const ReferenceCase& c = *run.reference;
  for (size_t i = 0; i < in.size(); ++i)
    findings.look([&] {
      if (in[i].defined() && bytes_of(in[i]) != bytes_of(in_dtype(c.in[i], run.dtype)))
        throw Mismatch(fmt::format("input {} was changed", i));
    });
}

void run_case(const CaseRun& run, const Subject& subject) {
  const ReferenceCase& c = *run.reference;
  // The subject comes first: where it does not offer the operator, the reference device need not
  // work.
  const List in = inputs_of(run, subject), out = run.line->call(c.args, in);
  const Expected expected = expected_of(run, subject);
  if (out.size() != expected.out.size())
    throw Mismatch(fmt::format("{} results, expected {}", out.size(), expected.out.size()));
  Findings findings;
  for (size_t i = 0; i < out.size(); ++i)
    findings.look([&] {
      const std::string which = std::to_string(i);
      if (!expected.out[i].defined()) throw Mismatch("the file has no output " + which);
      compare(out[i], expected.out[i], run, subject, "output " + which);
    });
  const Differentiated differentiated(
      c, in, out, [&](const Tensor& g) { return g.to(run.dtype).to(subject.device); });
  if (!differentiated.wanted.empty())
    compare_gradients(run, subject, differentiated, expected.gradients, findings);
  compare_inputs(run, in, findings);
  findings.require_none();
  require_elements(expected.out, expected.gradients);
}

}  // namespace

namespace {

// A case may name the type that it is for, by PyTorch's name.
std::vector<DType> types_of(const ReferenceCase& c) {
  if (c.f64_only) return {f64};
  const auto name = c.args.find("dtype");
  if (name != c.args.end() && *name == "float16") return {f16};
  if (name != c.args.end() && *name == "bfloat16") return {bf16};
  return {f32, f64};
}

// The half types that the line takes and the case does not name, where it has a number to round.
std::vector<DType> rounded_types_of(const Line& line, const ReferenceCase& c,
                                    const Subject& subject) {
  std::vector<DType> types;
  const bool real = std::any_of(c.in.begin(), c.in.end(), [](const Tensor& x) {
    return x.defined() && is_floating_point(x.dtype());
  });
  if (!real || types_of(c) != std::vector{f32, f64}) return types;
  for (DType t : {f16, bf16})
    if (contains(types_for(line, subject), t)) types.push_back(t);
  return types;
}

}  // namespace

std::vector<Check> case_checks(const Line& line, const Subject& subject, const CaseFolder& folder,
                               const Effort& effort) {
  const auto found = folder.by_op.find(line.name);
  if (line.no_reference || found == folder.by_op.end()) return {};
  std::vector<Check> checks;
  size_t turn = 0;
  for (auto& c : found->second) {
    if (is_promotion(*c)) {
      checks.push_back(promotion_check(c, subject));
      continue;
    }
    for (DType dtype : types_of(*c))
      for (bool contiguous : {true, false}) {
        if (!contiguous && !effort.strided_cases) continue;
        const CaseRun run{&line, c, dtype, contiguous ? 0 : ++turn};
        checks.push_back({"cases", line.name,
                          c->name + (contiguous ? "" : ", inputs not contiguous"), dtype,
                          [run, subject] { run_case(run, subject); }});
      }
    if (!effort.rounded_cases) continue;
    for (DType dtype : rounded_types_of(line, *c, subject)) {
      const CaseRun run{&line, c, dtype, 0, true};
      checks.push_back({"cases", line.name, c->name + ", inputs rounded", dtype,
                        [run, subject] { run_case(run, subject); }});
    }
  }
  return checks;
}

std::string cases_beside_the_table(const CaseFolder& folder) {
  const auto runs = [](const std::string& op) {
    for (auto& family : table())
      for (auto& line : family.lines)
        if (op == line.name && !line.no_reference) return true;
    return false;
  };
  std::string text;
  for (auto& [op, cases] : folder.by_op)
    if (!runs(op)) text += fmt::format(" {}({})", op, cases.size());
  return text;
}

}  // namespace tenon::conformance
