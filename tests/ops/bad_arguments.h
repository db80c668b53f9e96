// What the tests of wrong arguments ask of an error, and the calls that they change: those of the
// first variants of each line of the table.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include <boost/test/unit_test.hpp>

#include <tenon/conformance/driver.h>
#include <tenon/conformance/run.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/tenon.h>

namespace tenon::test::bad_arguments {

using conformance::Line;
using conformance::List;

// The names that an error may begin with: those of the functions of the table, in small letters as
// rnn, and of operators.
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

// Lines whose call asks a tensor something before it calls the function.
inline bool asks_before(const std::string& name) {
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
inline bool says_whose(const std::string& text, const Line& line, bool asked_before) {
  const std::string_view place = "\n  in ";
  if (const size_t at = text.rfind(place); at != text.npos) {
    const std::string_view rest = std::string_view(text).substr(at + place.size());
    if (known_names().contains(rest.substr(0, rest.find(':')))) return true;
  }
  // What a function asks of the functions that make tensors names those, and the shape.
  for (const char* maker : {"zeros", "ones", "full", "empty", "arange", "randint"})
    if (text.starts_with(maker) && text.find("shape (") != text.npos) return true;
  std::string name = text.substr(0, text.find(':'));
  if (name.size() < text.size() && name.ends_with('_')) name.pop_back();
  static const std::set<std::string> of_tensors = {"size",   "shape",  "dtype",
                                                   "device", "detach", "empty_like"};
  return known_names().contains(name) || std::string_view(line.name).starts_with(name + "_") ||
         (asked_before && of_tensors.contains(name));
}

// Either works, so that the results can be read, or throws a tenon::Error that says whose argument
// it was.
inline void try_call(const Line& line, const conformance::json& args, const List& in,
                     bool asked_before, const std::string& what) {
  try {
    for (auto& y : line.call(args, in))
      if (y.defined()) y.wait();
    synchronize(Device("cpu"));  // of steps whose results nobody has
  } catch (const Error& e) {
    BOOST_CHECK_MESSAGE(says_whose(e.what(), line, asked_before),
                        what << " is not told whose argument it was: " << e.what());
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
      const bool asked = asks_before(line.name) || std::string_view(family.name) == "optimizer";
      size_t left = 2;
      for (auto& variant : line.variants) {
        if (variant.large || left == 0) continue;
        const DType dtype = conformance::contains(line.types & variant.types, f32) ? f32 : i64;
        if (!conformance::contains(line.types & variant.types, dtype)) continue;
        --left;
        const conformance::Run run{
            &line, variant, dtype,
            std::vector<const conformance::Layout*>(variant.in.size(), &contiguous), 1};
        f(line,
          Good{&variant, conformance::parsed(variant),
               conformance::inputs_of(run, {Device("cpu"), Device("cpu")}, true, false).found},
          asked);
      }
    }
}

}  // namespace tenon::test::bad_arguments
