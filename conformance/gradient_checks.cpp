#include <algorithm>

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

void differentiate(const Line& line, const Variant& v, const Subject& subject) {
  DeviceGuard guard(subject.device);
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
  const Functions f = [&](const std::vector<Tensor>& moved) {
    List in = all;
    for (size_t k = 0; k < moved.size(); ++k) in[places[k]] = moved[k];
    return line.call(args, in);
  };
  check_gradients(f, varied, line.difference);
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

}  // namespace tenon::conformance
