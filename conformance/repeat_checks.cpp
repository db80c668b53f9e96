// The same call again gives the same bits, whatever was in memory before.
#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/compare.h>
#include <tenon/conformance/driver.h>
#include <tenon/conformance/run.h>
#include <tenon/core/base/environment.h>
#include <tenon/core/runtime/check/contents.h>

namespace tenon::conformance {

namespace {

// Leaves memory in the device's cache that holds a large number in every dtype. In checked mode,
// what comes out of the cache is filled: OtherContents do it there.
void soil_memory(const List& results, Device device, checked::Pattern number) {
  if (check_settings().on) return;
  List soiled;
  for (auto& y : results)
    if (y.defined()) {
      const std::vector<unsigned char> large(static_cast<size_t>(y.numel()) * size_of(y.dtype()),
                                             checked::byte_at(number, 0));
      soiled.push_back(from_host(large.data(), u8, large.size(), {.device = device}));
    }
  for (auto& x : soiled) x.wait();
}

void require_same_bits(const List& first, const List& second, Device reference, const char* what) {
  if (first.size() != second.size()) throw Mismatch("another number of results");
  for (size_t i = 0; i < first.size(); ++i) {
    if (!first[i].defined()) continue;
    const auto a = bytes_of(first[i]), b = bytes_of(second[i]);
    if (a.size() != b.size()) throw Mismatch("another shape the second time");
    const auto differ = std::mismatch(a.begin(), a.end(), b.begin());
    if (differ.first == a.end()) continue;
    const auto at = static_cast<size_t>(differ.first - a.begin()) / size_of(first[i].dtype());
    const auto f = copied_to(first[i], reference).to_vector<double>(),
               s = copied_to(second[i], reference).to_vector<double>();
    throw Mismatch(fmt::format("{} {}: element {} is {:.17g} the first time and {:.17g} the second",
                               what, i, place_of(at, first[i].shape()), f[at], s[at]));
  }
}

// Returns the results of a call, after it was made again where memory holds something else: numbers
// beyond all results, because a greatest or smallest element takes no notice of others.
template <class F>
List same_twice(const char* what, const Subject& subject, F&& call) {
  const List first = call();
  for (auto& y : first)
    if (y.defined()) y.wait();
  for (const auto number : {checked::Pattern::large, checked::Pattern::large_negative}) {
    soil_memory(first, subject.device, number);
    const checked::OtherContents other(number);
    require_same_bits(first, call(), subject.reference, what);
  }
  return first;
}

void repeat(const Run& run, const Subject& subject) {
  const json args = parsed(run.variant);
  // Without NaN, which would hide everything else in a sum.
  const List in = inputs_of(run, subject, true, false).found;
  const List results = same_twice("output", subject, [&] { return run.line->call(args, in); });
  List slopes;
  if (run.line->difference != 0 && contains(kReals, run.dtype))
    slopes = same_twice("gradient", subject, [&] { return gradients(run, subject, args, in); });
  require_elements(results, slopes);
}

int64_t elements_of(const Variant& variant) {
  int64_t sum = 0;
  for (auto& in : variant.in) sum += in.shape.numel();
  return sum;
}

}  // namespace

std::vector<Check> repeat_checks(const Line& line, const Subject& subject, size_t number,
                                 const Effort& effort) {
  if (line.variants.empty()) return {};
  // The largest, which are worked on by several threads, and others in turn.
  std::vector<const Variant*> variants;
  for (auto& v : line.variants) variants.push_back(&v);
  std::stable_sort(variants.begin(), variants.end(),
                   [](auto* a, auto* b) { return elements_of(*a) > elements_of(*b); });
  std::vector<DType> types;
  for (DType t : {f32, f64, f16, bf16, i64, i32, u8, boolean})
    if (contains(line.types | line.types_elsewhere | line.types_of_cpu, t)) types.push_back(t);
  std::vector<Check> checks;
  for (size_t turn = 0; turn < effort.repeats; ++turn) {
    const size_t at = turn < 2 ? turn : turn * 7 + number;
    const Variant& variant = *variants[at % variants.size()];
    const DType dtype = types[turn % types.size()];
    if (!contains(variant.types, dtype)) continue;
    const auto& all = layouts(!line.distinct);
    Run run{&line, variant, dtype, {}, turn, Alias::none};
    for (size_t i = 0; i < variant.in.size(); ++i)
      run.layout.push_back(turn < 2 ? &all[0] : &all[(turn + i) % all.size()]);
    checks.push_back({"repeat", line.name, run.describe() + ", twice", dtype,
                      [run, subject] { repeat(run, subject); }});
  }
  return checks;
}

}  // namespace tenon::conformance
