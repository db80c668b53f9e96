// Sizes that fast kernels are made for: multiples of those of vectors, blocks and tiles, powers of
// two, batches of them. An overlay may take no others, and the other checks seldom meet them. Each
// call is made first and compared if a plan of the overlay has run in it or in its gradients.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include <tenon/conformance/driver.h>
#include <tenon/conformance/findings.h>
#include <tenon/conformance/overlay.h>
#include <tenon/conformance/run.h>

namespace tenon::conformance {

namespace {

// The sizes that most kernels are made for come first.
constexpr int64_t kSizes[] = {64, 16, 128, 32, 8, 256};
// Elements of the largest input, and products of numbers: of one call, and of all calls of a check.
// Where results grow with all elements of all inputs, that is less.
constexpr int64_t kLargestInput = int64_t{1} << 18;
constexpr double kLargestProduct = 0x1p30, kAllProducts = 0x1p32, kLargestResult = 1e7;
// Of the calls of a check: those that are made, whether they make sense or not, and those that are
// compared.
constexpr size_t kMaxCalls = 64, kMaxCompared = 12;
// Calls after which an overlay is believed that does not have the operators.
constexpr size_t kEnoughToBelieve = 2;
// So many wrong results are enough to know.
constexpr size_t kMaxWrong = 3;
// Variants of a line that are changed: each has its own numbers of dimensions.
constexpr size_t kMaxVariants = 5;

using Changed = std::function<int64_t(int64_t)>;

Variant with_sizes(const Variant& variant, const Changed& changed) {
  Variant result = variant;
  for (auto& in : result.in) {
    for (size_t d = 0; d < in.shape.size(); ++d) in.shape[d] = changed(in.shape[d]);
    if (in.bound > 1) in.bound = changed(in.bound);
  }
  result.args = with_extents(variant, changed);
  return result;
}

double elements_of(const Shape& shape) {
  double elements = 1;
  for (int64_t n : shape) elements *= static_cast<double>(n);
  return elements;
}

bool has_channels(const Line& line, const Variant& variant) {
  return line.inputs && std::string_view(line.inputs) == "input weight bias" &&
         variant.in.size() == 3 && variant.in[1].shape.size() > 2;
}

// About how many products of two numbers a call takes, at most. `before` has the sizes of the
// table, where different extents differ.
double products_of(const Line& line, const Variant& variant, const Variant& before) {
  double products = 1;
  if (line.growing || !(has_channels(line, variant) || line.matrix_product)) {
    for (auto& in : variant.in) products *= std::max(elements_of(in.shape), 1.0);
    return products;
  }
  if (has_channels(line, variant)) {
    const Shape &x = variant.in[0].shape, &weight = variant.in[1].shape;
    return elements_of(weight) * elements_of(x) /
           static_cast<double>(std::max<int64_t>(x[x.size() + 1 - weight.size()], 1));
  }
  std::map<int64_t, double> most;  // of each extent of `before`, what it is in one input
  for (size_t i = 0; i < variant.in.size(); ++i) {
    std::map<int64_t, double> here;
    for (size_t d = 0; d < variant.in[i].shape.size(); ++d) {
      double& product = here.try_emplace(before.in[i].shape[d], 1).first->second;
      product *= static_cast<double>(std::max<int64_t>(variant.in[i].shape[d], 1));
    }
    for (auto& [extent, product] : here) {
      double& known = most.try_emplace(extent, 1).first->second;
      known = std::max(known, product);
    }
  }
  for (auto& [extent, product] : most) products *= product;
  return products;
}

bool is_small_enough(const Line& line, const Variant& variant, double products) {
  for (auto& in : variant.in)
    if (elements_of(in.shape) > static_cast<double>(kLargestInput)) return false;
  return products <= (line.growing ? kLargestResult : kLargestProduct);
}

// Of convolutions, kernels and images stay as they are, or nothing would make sense.
Variant with_channels(const Variant& variant, int64_t factor) {
  Variant result = variant;
  Shape &x = result.in[0].shape, &weight = result.in[1].shape, &bias = result.in[2].shape;
  x[x.size() + 1 - weight.size()] *= factor;
  weight[0] *= factor;
  weight[1] *= factor;
  if (!bias.empty()) bias[0] *= factor;
  return result;
}

// Those that have elements, each of which differs from the others in the numbers of dimensions or,
// of convolutions, in its arguments.
std::vector<Variant> chosen_variants(const Line& line, DType dtype) {
  std::vector<Variant> chosen;
  std::set<std::string> known;
  for (auto& v : line.variants) {
    std::string form = has_channels(line, v) ? v.args : "";
    bool has_elements = contains(v.types, dtype);
    for (auto& in : v.in) {
      form += fmt::format(" {}{}", in.shape.size(), kind_of(line, in) == Values::absent ? "-" : "");
      has_elements = has_elements && in.shape.numel() > 0;
    }
    if (has_elements && chosen.size() < kMaxVariants && known.insert(form).second)
      chosen.push_back(v);
  }
  return chosen;
}

// All extents are multiples of a size, then all but one, then one alone.
std::vector<std::set<int64_t>> sets_of_extents(const Variant& variant) {
  std::set<int64_t> all;
  for (auto& in : variant.in)
    for (int64_t n : in.shape)
      if (n > 1) all.insert(n);
  std::vector<std::set<int64_t>> sets = {all};
  if (all.size() < 2) return sets;
  for (int64_t n : all) {
    sets.push_back(all);
    sets.back().erase(n);
  }
  if (all.size() > 2)
    for (int64_t n : all) sets.push_back({n});
  return sets;
}

// Each extent becomes the size itself, or a multiple of its own, so that no two are equal.
Variant changed_to(const Variant& variant, const std::set<int64_t>& extents, int64_t size,
                   bool distinct) {
  return with_sizes(variant, [&](int64_t n) {
    const auto found = extents.find(n);
    if (found == extents.end()) return n;
    return distinct ? size * (1 + std::distance(extents.begin(), found)) : size;
  });
}

struct Sized {
  Variant variant;
  double products;
};

std::vector<Sized> variants_of_sizes(const Line& line, DType dtype) {
  std::vector<Sized> all;
  const auto add = [&](Variant v, const Variant& before) {
    const double products = products_of(line, v, before);
    if (is_small_enough(line, v, products)) all.push_back({std::move(v), products});
  };
  const auto chosen = chosen_variants(line, dtype);
  for (int64_t size : kSizes)
    for (auto& v : chosen)
      if (has_channels(line, v)) add(with_channels(v, size), v);
  // A round for each number of extents that stay as they are, so that all variants have their turn.
  for (size_t round = 0; all.size() < kMaxCalls; ++round) {
    bool more = false;
    for (int64_t size : kSizes)
      for (auto& v : chosen) {
        const auto sets = sets_of_extents(v);
        if (round >= sets.size() || sets[round].empty()) continue;
        more = true;
        add(changed_to(v, sets[round], size, false), v);
        if (sets[round].size() > 1) add(changed_to(v, sets[round], size, true), v);
      }
    if (!more) break;
  }
  if (all.size() > kMaxCalls) all.erase(all.begin() + kMaxCalls, all.end());
  return all;
}

// One check of a line in a dtype.
class SizeCheck {
 public:
  SizeCheck(const Line& line, DType dtype, const Subject& subject, std::string& note)
      : line_(line), dtype_(dtype), subject_(subject), note_(note) {}

  void run() {
    double all = 0;
    for (auto& [variant, products] : variants_of_sizes(line_, dtype_)) {
      if (all + products > kAllProducts) continue;
      all += products;
      if (compared_ == kMaxCompared || wrong_ >= kMaxWrong || does_not_have_it()) break;
      ++calls_;
      if (!compare(variant, layouts()[0])) continue;
      ++compared_;
      compare(variant, layouts()[2]);  // transposed
      if (variant.in[0].shape.size() == 4) compare(variant, channels_last_layout());
    }
    note_ = fmt::format("plans of the overlay computed {} of {} calls", compared_, calls_);
    findings_.require_none();
  }

 private:
  // Whether it was asked and said of all operators that it does not have them.
  bool does_not_have_it() const {
    if (calls_ < kEnoughToBelieve || compared_ > 0) return false;
    bool asked = false;
    for (auto& refused : dispatch_stats().refused) {
      const std::string words = words_of_overlay(subject_, refused.reason);
      if (refuses_what_it_has(subject_, refused.op, words)) return false;
      asked = asked || !words.empty();
    }
    return asked;
  }

  // Whether a plan of the overlay runs in the gradients of a call in which none has run.
  bool has_gradients(const Run& run, const json& args, bool wide) const {
    if (!compares_gradients(line_, dtype_)) return false;
    const uint64_t before = runs_of_overlay(subject_);
    gradients(run, subject_, args, inputs_of(run, subject_, true, wide).found);
    return runs_of_overlay(subject_) > before;
  }

  // Returns false where the overlay made no plan, or the call makes no sense.
  bool compare(const Variant& variant, const Layout& layout) {
    Run run{&line_, variant, dtype_, {}, calls_};
    run.layout.assign(variant.in.size(), &layout);
    const bool wide = compared_in_f64(line_, dtype_, subject_);
    bool used = false;
    findings_.look([&] {
      try {
        const Sides sides = inputs_of(run, subject_, wide, wide);
        const json args = parsed(variant);
        const uint64_t before = runs_of_overlay(subject_);
        const Answer there = answer_of([&] { return line_.call(args, sides.found); });
        // An overlay that fails instead of refusing has run nothing either.
        if (there.refusal.empty() && runs_of_overlay(subject_) == before &&
            !has_gradients(run, args, wide))
          return;
        const Answer here = from_reference(
            subject_, [&] { return answer_of([&] { return line_.call(args, sides.expected); }); });
        if (!here.refusal.empty() && !there.refusal.empty()) return;
        used = true;
        if (!there.refusal.empty()) throw Mismatch(there.refusal);
        if (!here.refusal.empty())
          throw Mismatch("gives a result, but " + subject_.reference.str() +
                         " refuses: " + here.refusal);
        compare_results(run, subject_, wide, compares_gradients(line_, dtype_), there.results,
                        here.results);
      } catch (const Mismatch& e) {
        ++wrong_;
        throw Mismatch(run.describe() + ": " + e.what());
      } catch (const UnsupportedError&) {
        // Other sizes may be offered.
      } catch (const Skipped&) {
      }
    });
    return used;
  }

  const Line& line_;
  const DType dtype_;
  const Subject& subject_;
  std::string& note_;
  Findings findings_;
  size_t calls_ = 0, compared_ = 0, wrong_ = 0;
};

}  // namespace

std::vector<Check> size_checks(const Line& line, const Subject& subject) {
  std::vector<Check> checks;
  if (subject.overlay.empty() || line.variants.empty()) return checks;
  for (DType dtype : kEvery) {
    // What the core computes in f32 is no matter of half types.
    if (!contains(line.types | line.types_elsewhere, dtype)) continue;
    const auto note = std::make_shared<std::string>();
    checks.push_back(
        {"sizes", line.name, "multiples of 8 to 256", dtype,
         [&line, dtype, subject, note] { SizeCheck(line, dtype, subject, *note).run(); }, false,
         note});
  }
  return checks;
}

}  // namespace tenon::conformance
