// Tolerances: in f32 those of the case; in f64 1e-9 relative, and 1e-9 of the largest value
// absolute.
#include <algorithm>
#include <cmath>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/case_files.h>
#include <tenon/conformance/compare.h>
#include <tenon/conformance/driver.h>
#include <tenon/conformance/layout.h>
#include <tenon/conformance/run.h>
#include <tenon/core/autograd/autograd.h>

namespace tenon::conformance {

namespace {

struct CaseRun {
  const Line* line;
  std::shared_ptr<const ReferenceCase> reference;
  DType dtype;
  size_t layout;  // of the first input, in layouts(false); 0: contiguous throughout
};

void compare(const Tensor& found, const Tensor& expected, const CaseRun& run,
             const Subject& subject, const std::string& what) {
  double rtol = run.reference->rtol, atol = run.reference->atol;
  if (run.dtype == f64) {
    double largest = 0;
    for (double v : expected.to_vector<double>())
      largest = std::max(largest, std::isfinite(v) ? std::abs(v) : 0);
    rtol = 1e-9;
    atol = 1e-9 * std::max(largest, 1.0);
  }
  require_close(copied_to(found, subject.reference), expected, rtol, atol, what);
}

// A value that lies in memory as `layout` says. It is laid out on the reference device, so that the
// device needs no operator for it.
Tensor laid_out(const Tensor& x, const Layout& layout, const Subject& subject) {
  const Tensor whole =
      full(layout.whole(x.shape()), 1, {.dtype = x.dtype(), .device = subject.reference});
  layout.view(whole, x.shape()).copy_(x);
  return layout.view(whole.to(subject.device), x.shape());
}

List inputs_of(const CaseRun& run, const Subject& subject) {
  const ReferenceCase& c = *run.reference;
  const auto& all = layouts(false);
  List in;
  for (size_t i = 0; i < c.in.size(); ++i) {
    const Tensor& x = c.in[i];
    if (!x.defined()) {  // an optional input that was not given
      in.emplace_back();
      continue;
    }
    const Layout& layout = all[run.layout == 0 ? 0 : 1 + (run.layout + i) % (all.size() - 1)];
    in.push_back(
        laid_out(is_floating_point(x.dtype()) ? x.to(run.dtype) : x, layout, subject).detach());
    if (i < c.gin.size() && c.gin[i].defined()) in.back().requires_grad_();
  }
  return in;
}

void run_case(const CaseRun& run, const Subject& subject) {
  const ReferenceCase& c = *run.reference;
  const List in = inputs_of(run, subject), out = run.line->call(c.args, in);
  if (out.size() != c.out.size())
    throw Mismatch(std::to_string(out.size()) + " results, expected " +
                   std::to_string(c.out.size()));
  List sources, upstream;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!c.out[i].defined()) throw Mismatch("the file has no output " + std::to_string(i));
    compare(out[i], c.out[i], run, subject, "output " + std::to_string(i));
    if (i >= c.gout.size() || !c.gout[i].defined()) continue;
    sources.push_back(out[i]);
    upstream.push_back(c.gout[i].to(run.dtype).to(subject.device));
  }
  List wanted, expected;
  for (size_t i = 0; i < c.gin.size(); ++i)
    if (c.gin[i].defined()) {
      wanted.push_back(in[i]);
      expected.push_back(c.gin[i]);
    }
  if (wanted.empty()) return require_elements(c.out, {});
  // Once with the fused backward operators, once with the rules that can be differentiated again.
  for (bool again : {false, true}) {
    const auto found =
        grad(sources, wanted, upstream, {.retain_graph = true, .create_graph = again});
    for (size_t i = 0; i < found.size(); ++i)
      compare(found[i], expected[i], run, subject,
              "gradient " + std::to_string(i) + (again ? ", composed" : ""));
  }
  require_elements(c.out, expected);
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
    if (!runs(op)) text += " " + op + "(" + std::to_string(cases.size()) + ")";
  return text;
}

}  // namespace tenon::conformance
