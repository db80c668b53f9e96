// Wrong inputs to every function of the table: undefined tensors, others of another device, dtype
// or shape. Each call either works, so that its results can be read, or throws a tenon::Error that
// says whose argument it was.
#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include <boost/test/unit_test.hpp>

#include <tenon/conformance/driver.h>
#include <tenon/conformance/run.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/tenon.h>

BOOST_AUTO_TEST_SUITE(bad_arguments)

using namespace tenon;
using conformance::Line;
using conformance::List;

namespace {

// What is put in the place of an input.
struct Wrong {
  const char* what;
  std::function<Tensor(const Tensor&)> made;
};

Tensor ones_of(const Tensor& x, const Shape& shape) { return ones(shape, {.dtype = x.dtype()}); }
Shape changed(const Tensor& x, int64_t last) {
  Shape shape = x.shape();
  if (!shape.empty()) shape[shape.size() - 1] = last;
  return shape;
}

const std::vector<Wrong>& wrong_inputs() {
  static const std::vector<Wrong> all = {
      {"undefined", [](const Tensor&) { return Tensor(); }},
      {"on another device", [](const Tensor& x) { return x.to(Device("cpu", 1)); }},
      {"bool", [](const Tensor& x) { return x.to(boolean); }},
      {"i64", [](const Tensor& x) { return x.to(i64); }},
      {"u8", [](const Tensor& x) { return x.to(u8); }},
      {"f64", [](const Tensor& x) { return x.to(f64); }},
      {"f16", [](const Tensor& x) { return x.to(f16); }},
      {"without dimensions", [](const Tensor& x) { return ones_of(x, {}); }},
      {"a vector", [](const Tensor& x) { return ones_of(x, {3}); }},
      {"with a dimension more", [](const Tensor& x) { return ones_of(x, x.shape()).unsqueeze(0); }},
      {"with a dimension less",
       [](const Tensor& x) {
         Shape shape = x.shape();
         if (!shape.empty()) shape.erase(0);
         return ones_of(x, shape);
       }},
      {"longer",
       [](const Tensor& x) { return ones_of(x, changed(x, x.dim() ? x.size(-1) + 1 : 1)); }},
      {"empty", [](const Tensor& x) { return ones_of(x, changed(x, 0)); }},
      {"turned",
       [](const Tensor& x) {
         Shape shape = x.shape();
         std::vector<int64_t> sizes(shape.begin(), shape.end());
         std::reverse(sizes.begin(), sizes.end());
         return ones_of(x, sizes);
       }},
  };
  return all;
}

// The names that an error may begin with: those of the functions of the table, in small letters as
// rnn, and of operators.
const std::set<std::string, std::less<>>& known_names() {
  static const auto names = [] {
    std::set<std::string, std::less<>> found;
    for (auto& family : conformance::table())
      for (auto& line : family.lines) {
        std::string name = line.name;
        found.insert(name);
        std::transform(name.begin(), name.end(), name.begin(),
                       [](char c) { return std::tolower(c); });
        found.insert(name);
        found.insert(name + "_step");
      }
    for (const Op* op = all_ops(); op; op = op->next) found.insert(op->name);
    return found;
  }();
  return names;
}

// Lines whose call asks a tensor something before it calls the function.
bool asks_before(const std::string& name) {
  static const std::set<std::string> those = {"arange",    "batch_norm",   "batch_norm_stats",
                                              "copy",      "ctc_loss",     "embedding",
                                              "eye",       "fill",         "index",
                                              "index_put", "index_select", "linspace",
                                              "logspace",  "matrix_power", "normal",
                                              "pad",       "randint",      "randperm",
                                              "to_device", "tril_indices", "triu_indices",
                                              "uniform"};
  return those.contains(name);
}

// The beginning up to the colon is such a name, or that of the function in place or without
// "_like"; of work that was queued, the last line says it.
bool says_whose(const std::string& text, const Line& line, bool asked_before) {
  const std::string_view place = "\n  in ";
  if (const size_t at = text.rfind(place); at != text.npos) {
    const std::string_view rest = std::string_view(text).substr(at + place.size());
    if (known_names().contains(rest.substr(0, rest.find(':')))) return true;
  }
  std::string name = text.substr(0, text.find(':'));
  if (name.size() < text.size() && name.ends_with('_')) name.pop_back();
  static const std::set<std::string> of_tensors = {"size",   "shape",  "dtype",
                                                   "device", "detach", "empty_like"};
  return known_names().contains(name) || std::string_view(line.name).starts_with(name + "_") ||
         (asked_before && of_tensors.contains(name));
}

size_t count = 0;

void try_call(const Line& line, const conformance::json& args, const List& in, bool asked_before,
              const std::string& what) {
  ++count;
  try {
    for (auto& y : line.call(args, in))
      if (y.defined()) y.wait();
    synchronize(Device("cpu"));  // of steps whose results nobody has
  } catch (const Error& e) {
    BOOST_CHECK_MESSAGE(says_whose(e.what(), line, asked_before),
                        what << " is not told whose argument it was: " << e.what());
  } catch (const std::exception& e) {
    BOOST_ERROR(what << " throws another exception: " << e.what());
  }
}

void try_line(const Line& line, bool asked_before) {
  static const conformance::Layout contiguous = {"contiguous", conformance::layout::same,
                                                 conformance::layout::all};
  size_t left = 2;
  for (auto& variant : line.variants) {
    if (variant.large || left == 0) continue;
    const DType dtype = conformance::contains(line.types & variant.types, f32) ? f32 : i64;
    if (!conformance::contains(line.types & variant.types, dtype)) continue;
    --left;
    const conformance::Run run{
        &line, variant, dtype,
        std::vector<const conformance::Layout*>(variant.in.size(), &contiguous), 1};
    const auto args = conformance::parsed(variant);
    const List good =
        conformance::inputs_of(run, {Device("cpu"), Device("cpu")}, true, false).found;
    for (size_t i = 0; i < good.size(); ++i)
      for (auto& wrong : wrong_inputs()) {
        if (!good[i].defined() || good[i].numel() > 10000) continue;
        List in;
        for (auto& x : good) in.push_back(x.defined() ? x.clone() : Tensor());
        in[i] = wrong.made(in[i]);
        try_call(line, args, in, asked_before,
                 std::string(line.name) + " " + variant.args + " whose input " + std::to_string(i) +
                     " is " + wrong.what);
      }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_function_refuses_or_computes) {
  for (auto& family : conformance::table())
    for (auto& line : family.lines)
      try_line(line, asks_before(line.name) || std::string_view(family.name) == "optimizer");
  BOOST_TEST(count > 10000u);
}

BOOST_AUTO_TEST_SUITE_END()
