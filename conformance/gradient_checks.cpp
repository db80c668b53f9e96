#include <algorithm>
#include <functional>

#include <tenon/conformance/differences.h>
#include <tenon/conformance/driver.h>
#include <tenon/conformance/run.h>

namespace tenon::conformance {

namespace {

// Away from kinks, the k-th input unlike the others.
Tensor smooth(const In& in, Values kind, size_t k, Random& random, const Subject& subject) {
  const double phase = 0.3 + 0.8 * static_cast<double>(k);
  if (kind == Values::flags || kind == Values::index)
    return random.values(in, kind, f64, in.shape, subject.reference).to(subject.device);
  if (kind == Values::positive || kind == Values::constant) return positive(in.shape, phase);
  if (kind == Values::near_one) return near_one(in.shape, phase);
  return sample(in.shape, phase);
}

// Those with elements to differentiate by, at most 48.
std::vector<const Variant*> small_variants(const Line& line) {
  std::vector<const Variant*> small;
  for (const Variant& v : line.variants) {
    int64_t elements = 0;
    for (auto& in : v.in)
      if (!is_fixed(kind_of(line, in))) elements += in.shape.numel();
    if (elements > 0 && elements <= 48 && contains(v.types, f64)) small.push_back(&v);
  }
  return small;
}

// A variant as a function of the inputs that are differentiated by.
struct Problem {
  Functions f;
  List inputs;
};

Problem problem_of(const Line& line, const Variant& v, const Subject& subject) {
  Random random(line, 0);
  const json args = parsed(v);
  List all, varied;
  std::vector<size_t> places;
  for (size_t i = 0; i < v.in.size(); ++i) {
    const Values kind = kind_of(line, v.in[i]);
    all.push_back(kind == Values::absent ? Tensor() : smooth(v.in[i], kind, i, random, subject));
    if (kind == Values::absent || is_fixed(kind)) continue;
    varied.push_back(all.back());
    places.push_back(i);
  }
  return {[&line, args, all, places](const std::vector<Tensor>& moved) {
            List in = all;
            for (size_t k = 0; k < moved.size(); ++k) in[places[k]] = moved[k];
            return line.call(args, in);
          },
          varied};
}

void differentiate(const Line& line, const Variant& v, const Subject& subject) {
  DeviceGuard guard(subject.device);
  const Problem problem = problem_of(line, v, subject);
  check_gradients(problem.f, problem.inputs, line.difference);
}

std::string describe(const Variant& v) {
  std::string text = v.args + (v.args.empty() ? "of" : " of");
  for (auto& in : v.in) text += (&in == v.in.data() ? " " : ", ") + in.shape.str();
  return text;
}

}  // namespace

std::vector<Check> gradient_checks(const Line& line, const Subject& subject, size_t number,
                                   const Effort& effort) {
  if (line.difference == 0) return {};
  const auto small = small_variants(line);
  if (small.empty())
    return {{"gradients", line.name, "every variant", f64,
             [] { throw Mismatch("no variant is small enough for finite differences"); }}};
  const size_t most = std::min(small.size(), effort.differences),
               step = (small.size() + most - 1) / most;
  std::vector<Check> checks;
  for (size_t at = number % step; at < small.size(); at += step) {
    const Variant& v = *small[at];
    checks.push_back({"gradients", line.name, describe(v), f64,
                      [&line, &v, subject] { differentiate(line, v, subject); }});
  }
  return checks;
}

void for_each_differentiated(const Line& line, const Subject& subject,
                             const std::function<void(const std::vector<Tensor>&)>& look) {
  if (line.difference == 0) return;
  DeviceGuard guard(subject.device);
  for (const Variant* v : small_variants(line)) {
    const Problem problem = problem_of(line, *v, subject);
    List leaves, sources, seeds;
    for (auto& x : problem.inputs) leaves.push_back(x.detach().requires_grad_());
    for (auto& y : problem.f(leaves)) {
      if (!y.defined() || !y.requires_grad()) continue;
      sources.push_back(y);
      seeds.push_back(ones_like(y).requires_grad_());
    }
    if (sources.empty()) continue;
    look(sources);
    look(grad(sources, leaves, seeds, {.create_graph = true, .allow_unused = true}));
  }
}

}  // namespace tenon::conformance
