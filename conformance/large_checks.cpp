// Values from large contiguous inputs: a kernel may take these another way, and an overlay may take
// nothing else.
#include <algorithm>
#include <cmath>
#include <set>

#include <tenon/conformance/compare.h>
#include <tenon/conformance/driver.h>
#include <tenon/conformance/run.h>

namespace tenon::conformance {

namespace {

// Elements of the largest input: several threads work on it, and more than a block each.
constexpr int64_t kMin = 10000, kMax = 100000, kAim = 20000;

int64_t largest_input(const Variant& variant) {
  int64_t most = 0;
  for (auto& in : variant.in) most = std::max(most, in.shape.numel());
  return most;
}
int64_t all_inputs(const Variant& variant) {
  int64_t sum = 0;
  for (auto& in : variant.in) sum += in.shape.numel();
  return sum;
}
bool of_one_shape(const Variant& variant) {
  return std::all_of(variant.in.begin(), variant.in.end(),
                     [&](auto& in) { return in.shape == variant.in[0].shape; });
}

// The variant with `extent` multiplied wherever it occurs.
Variant multiplied(const Variant& variant, int64_t extent, int64_t factor) {
  const auto changed = [&](int64_t n) { return n == extent ? n * factor : n; };
  Variant result = variant;
  for (auto& in : result.in) {
    Shape shape;
    for (int64_t n : in.shape) shape.push_back(changed(n));
    in.shape = shape;
    in.bound = changed(in.bound);
  }
  result.args = with_extents(variant, changed);
  return result;
}

// What a variant can be made of that is large; factors are odd, so that there is a ragged end.
void add_multiples(const Variant& variant, std::vector<Variant>& all) {
  std::set<int64_t, std::greater<>> extents;
  for (auto& in : variant.in)
    for (int64_t n : in.shape)
      if (n > 1) extents.insert(n);
  const int64_t most = largest_input(variant);
  if (most == 0 || most >= kMin) return;
  const int64_t whole = kAim / most | 1,
                root = static_cast<int64_t>(std::sqrt(static_cast<double>(kAim / most))) | 1;
  for (int64_t extent : extents)
    for (int64_t factor : {whole, root}) {
      Variant result = multiplied(variant, extent, factor);
      const int64_t elements = largest_input(result);
      if (elements >= kMin && elements <= kMax) all.push_back(std::move(result));
    }
}

// Returns the large variants of the table, the largest first, and then the others with multiplied
// sizes, beginning with those whose inputs all have one shape. The reference device decides whether
// such a call makes sense.
std::vector<Variant> large_variants(const Line& line, DType dtype) {
  std::vector<Variant> large, others;
  for (auto& v : line.variants) {
    if (!contains(v.types, dtype)) continue;
    const int64_t elements = largest_input(v);
    const bool is_large = v.large || (elements >= kMin && elements <= kMax);
    (is_large ? large : others).push_back(v);
  }
  std::stable_sort(large.begin(), large.end(),
                   [](auto& a, auto& b) { return all_inputs(a) > all_inputs(b); });
  std::stable_sort(others.begin(), others.end(), [](auto& a, auto& b) {
    return std::pair(of_one_shape(a), largest_input(a)) >
           std::pair(of_one_shape(b), largest_input(b));
  });
  for (auto& v : others) add_multiples(v, large);
  return large;
}

Run run_of(const Line& line, const Variant& variant, DType dtype) {
  Run run{&line, variant, dtype, {}};
  run.layout.assign(variant.in.size(), &layouts()[0]);
  return run;
}

void compare_large(const Line& line, DType dtype, const Subject& subject) {
  // The cpu has nobody but itself to be compared with.
  const bool itself = subject.device.type() == "cpu" && subject.overlay.empty(),
             wide = compared_in_f64(line, dtype, subject) ||
                    (itself && dtype == f32 && line.tolerance.f32 > 0 && line.difference > 0);
  for (auto& variant : large_variants(line, dtype)) {
    const Run run = run_of(line, variant, dtype);
    const Sides sides = inputs_of(run, subject, wide, wide);
    const json args = parsed(variant);
    // The subject comes first, as in shape_checks.cpp.
    const Answer there = answer_of([&] { return line.call(args, sides.found); });
    const Answer here = from_reference(
        subject, [&] { return answer_of([&] { return line.call(args, sides.expected); }); });
    if (!here.refusal.empty() || std::none_of(here.results.begin(), here.results.end(),
                                              [](auto& y) { return y.numel() > 0; }))
      continue;
    try {
      if (!there.refusal.empty()) throw Mismatch(there.refusal);
      return compare_results(run, subject, wide, compares_gradients(line, dtype), there.results,
                             here.results);
    } catch (const Mismatch& e) {
      throw Mismatch(run.describe() + ": " + e.what());
    }
  }
  throw Mismatch("the table has no large variant of it, and none can be made of others");
}

}  // namespace

std::vector<Check> large_checks(const Line& line, const Subject& subject) {
  std::vector<Check> checks;
  for (DType dtype : kEvery)
    if (contains(line.types | line.types_elsewhere | line.types_of_cpu, dtype))
      checks.push_back({"layouts", line.name, "large and contiguous", dtype,
                        [&line, dtype, subject] { compare_large(line, dtype, subject); }});
  return checks;
}

}  // namespace tenon::conformance
