// Shapes that the table does not have: each extent of a variant is taken as a symbol, and another
// number is put in its place wherever it occurs. Whether such a call makes sense is for the
// reference device to say: both sides refuse it, or both give the same.
#include <algorithm>
#include <map>

#include <tenon/conformance/compare.h>
#include <tenon/conformance/driver.h>
#include <tenon/conformance/run.h>
#include <tenon/core/dispatch/op.h>

namespace tenon::conformance {

namespace {

constexpr double kMaxElements = 20000;
// The product of the numbers of elements of all inputs, where results grow with it.
constexpr double kMaxProduct = 1e6;

// A few of each: around the sizes of vectors and blocks, and primes.
constexpr int64_t kExtents[] = {1,  2,  2,  3,  3,  4,  5,  6,  7,  8,  9,   11,  13,
                                15, 16, 17, 23, 31, 32, 33, 63, 64, 65, 100, 127, 257};

// What the extents of a variant become; 1 broadcasts and stays.
class Symbols {
 public:
  enum class Kind { any, ones, with_zero };
  Symbols(const Variant& variant, Kind kind, Random& random) : kind_(kind), random_(random) {
    for (auto& in : variant.in)
      if (in.bound > 0) bounds_.push_back(in.bound);
    if (kind != Kind::with_zero) return;
    std::vector<int64_t> all;
    for (auto& in : variant.in)
      for (int64_t n : in.shape)
        if (n > 1 && !is_bound(n)) all.push_back(n);
    if (!all.empty()) becomes_[all[pick(all.size())]] = 0;
  }

  int64_t operator()(int64_t extent) {
    if (extent == 1) return 1;
    if (auto found = becomes_.find(extent); found != becomes_.end()) return found->second;
    if (kind_ == Kind::ones) return becomes_[extent] = 1;
    return becomes_[extent] = kExtents[pick(std::size(kExtents))];
  }
  Shape operator()(const Shape& shape) {
    Shape result;
    for (int64_t n : shape) result.push_back((*this)(n));
    return result;
  }

 private:
  size_t pick(size_t count) {
    return static_cast<size_t>(random_.pick(0, static_cast<int64_t>(count) - 1));
  }
  bool is_bound(int64_t n) const {
    return std::find(bounds_.begin(), bounds_.end(), n) != bounds_.end();
  }

  Kind kind_;
  Random& random_;
  std::map<int64_t, int64_t> becomes_;
  std::vector<int64_t> bounds_;  // of indices, of which there is none in an extent of 0
};

// As a double, which does not overflow. An extent of 0 counts as 1: the tensor may be a part of one
// that has elements.
double size_of_inputs(const Variant& variant) {
  double most = 0;
  for (auto& in : variant.in) {
    double elements = 1;
    for (int64_t n : in.shape) elements *= static_cast<double>(std::max<int64_t>(n, 1));
    most = std::max(most, elements);
  }
  return most;
}

double product_of_inputs(const Variant& variant) {
  double product = 1;
  for (auto& in : variant.in)
    for (int64_t n : in.shape) product *= static_cast<double>(n);
  return product;
}

Variant renamed(const Line& line, const Variant& variant, Symbols::Kind kind, Random& random) {
  for (;;) {
    Symbols symbols(variant, kind, random);
    Variant result = variant;
    for (auto& in : result.in) {
      in.shape = symbols(in.shape);
      if (in.bound > 1) in.bound = symbols(in.bound);
    }
    result.args = with_extents(variant, [&](int64_t n) { return symbols(n); });
    if (size_of_inputs(result) <= kMaxElements &&
        (!line.growing || product_of_inputs(result) <= kMaxProduct))
      return result;
  }
}

// A pointwise operator gets any shapes that broadcast: of each input some dimensions are 1, and the
// first ones may be missing.
Variant broadcast(const Variant& variant, Random& random) {
  Shape whole;
  for (auto rank = random.pick(0, 5); rank-- > 0;)
    whole.push_back(kExtents[random.pick(0, whole.numel() > 1000 ? 4 : 15)]);
  Variant result = variant;
  for (auto& in : result.in) {
    in.shape = {};
    const auto missing = static_cast<size_t>(random.pick(0, 3) ? 0 : random.pick(0, whole.size()));
    for (size_t d = missing; d < whole.size(); ++d)
      in.shape.push_back(random.pick(0, 3) ? whole[d] : 1);
  }
  return result;
}

bool is_pointwise(const Line& line) {
  for (const Op* op = all_ops(); op; op = op->next)
    if (std::string_view(op->name) == (line.op ? line.op : line.name) && op->pointwise) return true;
  return false;
}

// The subject comes first: where it does not offer the operator, the reference device need not
// work.
void agree_or_refuse(const Run& run, const Subject& subject) {
  const Line& line = *run.line;
  const bool wide = run.wide || compared_in_f64(line, run.dtype, subject);
  const json args = parsed(run.variant);
  const auto fits_without_nan = [&] {  // other values may not fit, such as an index
    const Sides ordinary = inputs_of(run, subject, true, wide);
    return answer_of([&] { return line.call(args, ordinary.expected); }).refusal.empty();
  };
  const Sides sides = inputs_of(run, subject, wide, wide);
  const Answer there = answer_of([&] { return line.call(args, sides.found); });
  const Answer here = from_reference(
      subject, [&] { return answer_of([&] { return line.call(args, sides.expected); }); });
  if (!here.refusal.empty()) {
    if (!there.refusal.empty()) throw Skipped();
    throw Mismatch("gives a result, but " + subject.reference.str() + " refuses: " + here.refusal);
  }
  if (!there.refusal.empty()) throw Mismatch(there.refusal);
  const bool with_gradients = compares_gradients(line, run.dtype) && fits_without_nan();
  compare_results(run, subject, wide, with_gradients, there.results, here.results);
}

Run draw(const Line& line, const Variant& variant, DType dtype, size_t seed, size_t turn,
         const Subject& subject) {
  Random random(line, seed);
  Run run{&line, variant, dtype, {}, seed, Alias::none};
  if (turn % 3 == 2 && is_pointwise(line))
    run.variant = broadcast(variant, random);
  else
    run.variant = renamed(line, variant,
                          turn == 0   ? Symbols::Kind::ones
                          : turn == 1 ? Symbols::Kind::with_zero
                                      : Symbols::Kind::any,
                          random);
  const auto& all = layouts(!line.distinct);
  for (size_t i = 0; i < run.variant.in.size(); ++i)
    run.layout.push_back(&all[static_cast<size_t>(random.pick(0, int64_t(all.size()) - 1))]);
  if (turn % 4 == 3 && run.variant.in.size() > 1)
    run.alias = random.pick(0, 1) ? Alias::same : Alias::overlapping;
  run.awkward = turn % 4 == 2 && line.difference > 0;
  // The cpu has nobody but itself to be compared with.
  run.wide =
      !run.awkward && dtype == f32 && subject.device.type() == "cpu" && line.tolerance.f32 > 0;
  return run;
}

}  // namespace

std::vector<Check> shape_checks(const Line& line, const Subject& subject, size_t number,
                                const Effort& effort) {
  std::vector<DType> types;
  for (DType t : kEvery)
    if (contains(line.types | line.types_elsewhere | line.types_of_cpu, t)) types.push_back(t);
  std::vector<const Variant*> variants;
  for (auto& v : line.variants)
    if (size_of_inputs(v) <= kMaxElements) variants.push_back(&v);
  std::vector<Check> checks;
  for (size_t turn = 0; turn < effort.shapes && !variants.empty(); ++turn) {
    const size_t seed = static_cast<size_t>(effort.seed) * 1000003 + number * 1009 + turn;
    const auto last = static_cast<int64_t>(variants.size()) - 1;
    const Variant& variant = *variants[static_cast<size_t>(Random(line, ~seed).pick(0, last))];
    const DType dtype = types[(turn + number) % types.size()];
    if (!contains(variant.types, dtype)) continue;
    const Run run = draw(line, variant, dtype, seed, turn, subject);
    checks.push_back({"shapes", line.name, run.describe(), dtype,
                      [run, subject] { agree_or_refuse(run, subject); }});
  }
  return checks;
}

}  // namespace tenon::conformance
