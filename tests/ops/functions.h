// The tables of functions in docs/operators.md: what each function of conformance/cases runs, and
// who has kernels for it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <tenon/conformance/driver.h>
#include <tenon/conformance/run.h>
#include <tenon/core/runtime/dispatch_stats.h>

#include "ops/page.h"

namespace tenon::functions {

using conformance::Line;
using Operators = std::set<std::string>;
inline constexpr const char* kBackends[] = {"cpu", "cuda", "onednn"};

// What was seen of the lines of one name.
struct Function {
  Operators runs, own, in_f32, refused;  // operators; dtypes in which it runs so
  bool gradient = false, copies = false;
};

// The operators for which a backend registers kernels, read in its sources: not every machine has
// every device.
inline Operators kernels_of(const std::filesystem::path& backend) {
  static const std::regex registration(R"rx(Kernel \w+\((?:\{((?:\s*"\w+",?)+)\}|(k\w+),))rx"),
      name(R"rx("(\w+)")rx");
  Operators found;
  for (auto& entry : std::filesystem::recursive_directory_iterator(backend / "kernels")) {
    if (!entry.is_regular_file()) continue;
    const std::string text = page::read(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), registration), end; at != end; ++at) {
      std::string list = (*at)[1];
      if (list.empty()) {  // a table, whose entries name their operators
        const size_t table = text.find((*at)[2].str() + "[] = {");
        BOOST_TEST_REQUIRE(table != std::string::npos, entry.path());
        list = text.substr(table, text.find("};\n", table) - table);
      }
      for (std::sregex_iterator op(list.begin(), list.end(), name); op != end; ++op)
        found.insert((*op)[1]);
    }
  }
  return found;
}

inline const conformance::Layout kContiguous = {"contiguous", conformance::layout::same,
                                                conformance::layout::all},
                                 kTransposed = {"transposed", conformance::layout::reversed,
                                                conformance::layout::transposed};

// Calls the function with the inputs of a variant, on a device that has the kernels of the cpu and
// no overlay. `recorded`: with a gradient, if it may have one.
inline DispatchStats called(const conformance::Run& run, bool recorded, bool& gradient) {
  const Device device("sim", 0);
  const auto& variant = run.variant;
  conformance::List in = conformance::inputs_of(run, {device, "cpu"}, true, false).found;
  for (size_t i = 0; i < in.size(); ++i)
    if (recorded && in[i].defined() && is_floating_point(in[i].dtype()) &&
        !conformance::is_fixed(conformance::kind_of(*run.line, variant.in[i])))
      in[i].requires_grad_();
  synchronize(device);
  reset_dispatch_stats();
  try {
    const conformance::List out = run.line->call(conformance::parsed(variant), in);
    for (auto& y : out) gradient = gradient || (y.defined() && y.requires_grad());
  } catch (const AutogradError&) {  // it changes its argument, such as an optimizer
    return called(run, false, gradient);
  }
  synchronize(device);
  return dispatch_stats();
}

// The few smallest variants for a dtype, in their order.
inline std::vector<const conformance::Variant*> small_variants(const Line& line, DType dtype) {
  std::vector<const conformance::Variant*> found;
  for (auto& variant : line.variants) {
    int64_t elements = 0;
    for (auto& in : variant.in) elements = std::max(elements, in.shape.numel());
    if (elements > 0 && elements <= 4096 && !variant.large &&
        conformance::contains(variant.types, dtype) && found.size() < 3)
      found.push_back(&variant);
  }
  return found;
}

// `first`: of the lines of this name. Others call it in special ways, some of them several
// functions at once.
inline void look_at(const Line& line, DType dtype, bool first, Function& function) {
  const auto variants = small_variants(line, dtype);
  bool widened = false;
  for (auto* variant : variants) {
    const auto run_from = [&](const conformance::Layout& layout) {
      return conformance::Run{&line, *variant, dtype,
                              std::vector<const conformance::Layout*>(variant->in.size(), &layout),
                              1};
    };
    DispatchStats stats = called(run_from(kContiguous), true, function.gradient);
    widened = widened || !stats.widened.empty();
    if (first && !is_half(dtype))
      for (auto& run : stats.runs) function.runs.insert(run.op);
    if (dtype != f32) continue;
    stats = called(run_from(kTransposed), true, function.gradient);
    function.copies = function.copies || !stats.hidden_copies.empty();
  }
  if (!variants.empty())
    (widened ? function.in_f32 : function.own).insert(std::string(name_of(dtype)));
}

inline std::string words(const Operators& names) {
  std::string text;
  for (auto& n : names) text += (text.empty() ? "" : " ") + n;
  return text;
}

// "cpu, cuda without qr": what has kernels of all, or of some.
inline std::string backends_for(const Operators& runs,
                                const std::map<std::string, Operators>& kernels) {
  std::string text;
  for (auto* backend : kBackends) {
    Operators missing;
    for (auto& op : runs)
      if (!kernels.at(backend).contains(op)) missing.insert(op);
    if (missing.size() == runs.size()) continue;
    text += (text.empty() ? "" : ", ") + std::string(backend);
    if (missing.empty()) continue;
    text += missing.size() * 2 <= runs.size() ? " without " + words(missing) : " in part";
  }
  return text;
}

inline std::string as_markdown(const std::filesystem::path& backends) {
  std::map<std::string, Operators> kernels;
  for (auto* backend : kBackends) kernels[backend] = kernels_of(backends / backend);
  std::string text;
  for (auto& family : conformance::table()) {
    std::map<std::string, Function> functions;
    for (auto& line : family.lines) {
      const bool first = !functions.contains(line.name);
      for (DType dtype : conformance::kEvery)
        if (conformance::contains(line.types | line.types_of_cpu, dtype))
          look_at(line, dtype, first, functions[line.name]);
    }
    text += "\n### " + std::string(family.name) +
            "\n\n| function | runs | gradient | dtypes | in f32 | views | kernels |\n"
            "|---|---|---|---|---|---|---|\n";
    for (auto& [name, f] : functions) {
      if (f.own.empty() && f.in_f32.empty()) continue;  // reference cases are all that there is
      text += "| `" + name + "` | " + (f.runs.empty() ? "nothing" : words(f.runs)) + " | " +
              (f.gradient ? "yes" : "no") + " | " + words(f.own) + " | " + words(f.in_f32) + " | " +
              (f.copies ? "copied" : "as they lie") + " | " + backends_for(f.runs, kernels) +
              " |\n";
    }
  }
  return text + "\n";
}

}  // namespace tenon::functions
