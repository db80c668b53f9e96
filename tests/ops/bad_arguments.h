// What the tests of wrong arguments ask of an error, and the calls that they change: those of the
// first variants of each line of the table.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include <boost/test/unit_test.hpp>

#include <tenon/conformance/driver.h>
#include <tenon/conformance/run.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/tenon.h>

#include "ops/arguments.h"
#include "support/drain.h"
#include "support/expect.h"

namespace tenon::test::bad_arguments {

using conformance::Line;
using conformance::List;

// The names of functions of the table, in small letters as rnn, and of operators.
inline const std::set<std::string, std::less<>>& known_names() {
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

// Lines whose call computes something, or asks a tensor something, before it calls the function:
// those whose arguments say how matrices or places are made of the inputs, and these.
inline bool asks_before(const std::string& name, const conformance::json& args) {
  static const std::set<std::string> those = {
      "acosh",        "arange",       "asin",         "batch_norm",   "batch_norm_stats",
      "copy",         "ctc_loss",     "embedding",    "eye",          "fill",
      "fused",        "index",        "index_put",    "index_select", "linspace",
      "logspace",     "matmul",       "matrix_power", "nanquantile",  "normal",
      "pad",          "quantile",     "randint",      "randperm",     "to_device",
      "tril_indices", "triu_indices", "uniform",      "view",         "binary_cross_entropy",
      "bucketize",    "cdist",        "searchsorted"};
  return those.contains(name) || args.contains("made") || args.contains("once") ||
         args.contains("places");
}

// The names that a line's function may have: its own, that of the layer in small letters, of the
// optimizer's step, or the beginning, as "div" of "div_rounded".
inline std::set<std::string, std::less<>> names_of(const Line& line) {
  std::string name = line.name;
  std::set<std::string, std::less<>> names = {name};
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return std::tolower(c); });
  names.insert({name, name == "adamw" ? "adam_step" : name + "_step"});
  for (const char* ending : {"_rounded", "_scalar", "_stats", "_device"})
    if (name.ends_with(ending)) names.insert(name.substr(0, name.size() - strlen(ending)));
  return names;
}

// The last line of a failure of queued work says which operator it was, and of which function that
// was a part: "gather: (4, 3), (4, 1) on cpu:0, part of nll_loss".
inline bool names_function_of_work(std::string_view place, const Line& line, bool asked_before) {
  const std::string_view op = place.substr(0, place.find(':'));
  if (asked_before && known_names().contains(op)) return true;
  const auto names = names_of(line);
  return names.contains(op) ||
         std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return place.find(", part of " + name) != place.npos;
         });
}

// The beginning up to the colon is such a name, or that of the function in place.
inline bool names_function(std::string_view text, const Line& line, bool asked_before) {
  const std::string_view place = "\n  in ";
  if (const size_t at = text.rfind(place); at != text.npos)
    return names_function_of_work(text.substr(at + place.size()), line, asked_before);
  std::string_view name = text.substr(0, text.find(':'));
  name = name.substr(0, name.find(" of shape"));
  if (name.size() == text.size()) return false;
  if (name.ends_with('_')) name.remove_suffix(1);
  if (names_of(line).contains(name)) return true;
  static const std::set<std::string, std::less<>> of_tensors = {"size",   "shape",      "dtype",
                                                                "device", "empty_like", "full"};
  return asked_before && (known_names().contains(name) || of_tensors.contains(name));
}

// Behind the name of the function stands that of a parameter or an option, which of several
// arguments it is, or the shape of one. Where the function leaves it to another one to say that,
// the name of that one stands there, too: "kl_div: sub: …".
inline bool names_argument(std::string_view text, const Line& line, const List& in) {
  const auto& functions = arguments::of_functions();
  std::set<std::string, std::less<>> called = names_of(line);
  for (size_t colon = text.find(": "); colon != text.npos; colon = text.find(": ")) {
    if (!functions.contains(text.substr(0, colon)) && !called.contains(text.substr(0, colon)))
      break;
    called.insert(std::string(text.substr(0, colon)));
    text.remove_prefix(colon + 2);
  }
  if (has(text, " is an undefined tensor")) text = text.substr(0, text.find(" is an undefined"));
  for (const char* which :
       {"tensor", "operand", "operands", "dim", "dimension", "index", "label", "input", "number"})
    if (arguments::has_word(text, which)) return true;
  // Those of a step are lists, and numbered.
  const auto is_step = [](const std::string& name) { return name.ends_with("_step"); };
  if (arguments::has_word(text, "argument") && std::any_of(called.begin(), called.end(), is_step))
    return true;
  if (text.find("shape (") != text.npos) return true;
  for (auto& x : in)
    if (x.defined() && text.find(x.shape().str()) != text.npos) return true;
  bool known = false;
  for (auto& name : called)
    if (const auto declared = functions.find(name); declared != functions.end()) {
      known = true;
      for (auto& argument : declared->second)
        if (arguments::has_word(text, argument)) return true;
    }
  return !known;  // the sources are not here
}

// Either works, so that the results can be read, or throws a tenon::Error that names the function
// and the argument.
inline void try_call(const Line& line, const conformance::json& args, const List& in,
                     bool asked_before, const std::string& what) {
  try {
    for (auto& y : line.call(args, in))
      if (y.defined()) y.wait();
    synchronize(Device("cpu"));  // of steps whose results nobody has
  } catch (const Error& e) {
    BOOST_CHECK_MESSAGE(names_function(e.what(), line, asked_before),
                        what << " is not told which function refuses it: " << e.what());
    BOOST_CHECK_MESSAGE(names_argument(e.what(), line, in),
                        what << " is not told which argument it was: " << e.what());
    drain();  // other operators of the call may have failed, too
  } catch (const conformance::json::exception&) {
    // The table's own way to call it cannot say this.
  } catch (const std::exception& e) {
    BOOST_ERROR(what << " throws another exception: " << e.what());
  }
}

// A variant's arguments and inputs, as they should be.
struct Good {
  const conformance::Variant* variant;
  conformance::json args;
  List in;

  // The inputs again, so that no call sees what another one changed.
  List fresh() const {
    List copies;
    for (auto& x : in) copies.push_back(x.defined() ? x.clone() : Tensor());
    return copies;
  }
};

// Calls f(line, good, asked_before) for two variants of each line.
template <class F>
void for_each_call(F&& f) {
  static const conformance::Layout contiguous = {"contiguous", conformance::layout::same,
                                                 conformance::layout::all};
  for (auto& family : conformance::table())
    for (auto& line : family.lines) {
      const bool of_family = std::string_view(family.name) == "optimizer";
      size_t left = 2;
      for (auto& variant : line.variants) {
        if (variant.large || left == 0) continue;
        const DType dtype = conformance::contains(line.types & variant.types, f32) ? f32 : i64;
        if (!conformance::contains(line.types & variant.types, dtype)) continue;
        --left;
        const conformance::Run run{
            &line, variant, dtype,
            std::vector<const conformance::Layout*>(variant.in.size(), &contiguous), 1};
        const Good good{
            &variant, conformance::parsed(variant),
            conformance::inputs_of(run, {Device("cpu"), Device("cpu")}, true, false).found};
        f(line, good, of_family || asks_before(line.name, good.args));
      }
    }
}

}  // namespace tenon::test::bad_arguments
