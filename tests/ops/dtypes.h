// The table of dtypes in docs/operators.md: in which dtypes the kernels of each backend compute an
// operator by themselves. A process measures the column of the plugin that it can ask, and leaves
// the others as they are on the page.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/dispatch/op.h>
#include <tenon/core/runtime/profiler.h>
#include <tenon/tenon.h>

#include "ops/functions.h"
#include "ops/page.h"

namespace tenon::dtypes {

using conformance::Line;
using Names = std::set<std::string>;
inline constexpr std::array<const char*, 3> kColumns = {"cpu", "onednn", "cuda"};
// By operator, a text for each column.
using Table = std::map<std::string, std::array<std::string, kColumns.size()>>;

// "f32" of "f32 (2, 3)"; empty for what is absent.
inline std::string dtype_in(std::string_view tensor) {
  tensor.remove_prefix(std::min(tensor.size(), tensor.find_first_not_of(' ')));
  return std::string(tensor.substr(0, tensor.find(' ')));
}

// The dtype in which a run computed, of "f32 (2, 3), i64 (3,) -> f32 (2, 3)": that of the first
// input, or of the output where there is none, or the first is a condition.
inline std::string computed_in(std::string_view tensors) {
  const size_t arrow = tensors.find("-> ");
  const std::string in = dtype_in(tensors.substr(0, arrow)),
                    out = arrow == tensors.npos ? "" : dtype_in(tensors.substr(arrow + 3));
  return in.empty() || in == "->" || (in == "bool" && !out.empty()) ? out : in;
}

// Runs a variant and its gradient. What the device does not offer at all is no matter here.
inline void run(const conformance::Run& run, Device device, bool recorded) {
  try {
    conformance::List in = conformance::inputs_of(run, {device, "cpu"}, true, false).found;
    for (size_t i = 0; i < in.size(); ++i)
      if (recorded && in[i].defined() && is_floating_point(in[i].dtype()) &&
          !conformance::is_fixed(conformance::kind_of(*run.line, run.variant.in[i])))
        in[i].requires_grad_();
    const conformance::List out = run.line->call(conformance::parsed(run.variant), in);
    for (auto& y : out)
      if (y.defined() && y.requires_grad()) return y.backward(ones_like(y));
  } catch (const AutogradError&) {  // it changes its argument, such as an optimizer
    if (recorded) dtypes::run(run, device, false);
  } catch (const UnsupportedError&) {
  }
}

// By operator, the dtypes in which the plugin ran on this device.
inline std::map<std::string, Names> measured(Device device, std::string_view plugin) {
  profiler::Profiler profiler({.record_shapes = true, .max_events = 1 << 22});
  for (auto& family : conformance::table())
    for (auto& line : family.lines)
      for (DType dtype : conformance::kEvery) {
        if (!conformance::contains(line.types | line.types_of_cpu | line.types_elsewhere, dtype))
          continue;
        auto variants = functions::small_variants(line, dtype);
        if (variants.size() > 2) variants.resize(2);  // a third one shows nothing more
        for (auto* variant : variants)
          run({&line, *variant, dtype,
               std::vector<const conformance::Layout*>(variant->in.size(), &functions::kContiguous),
               1},
              device, true);
      }
  profiler.stop();
  BOOST_TEST(profiler.lost() == 0u);
  std::map<std::string, Names> found;
  for (auto& e : profiler.events())
    if (e.kind == profiler::Kind::op && e.by == plugin)
      found[e.name].insert(computed_in(e.tensors));
  return found;
}

// "any", "floats integers", "f32 f64".
inline std::string words(Names dtypes) {
  std::string text;
  const auto take = [&](const Names& all, const char* name) {
    for (auto& t : all)
      if (!dtypes.contains(t)) return;
    for (auto& t : all) dtypes.erase(t);
    text += (text.empty() ? "" : " ") + std::string(name);
  };
  take({"f32", "f64", "f16", "bf16", "i64", "i32", "u8", "bool"}, "any");
  take({"f32", "f64", "f16", "bf16"}, "floats");
  take({"i64", "i32", "u8"}, "integers");
  for (auto& t : dtypes) text += (text.empty() ? "" : " ") + t;
  return text;
}

// What the page says; nothing for an operator that is not on it.
inline Table read(const std::string& text) {
  Table table;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, '|');) {
      const size_t begin = cell.find_first_not_of(' '), end = cell.find_last_not_of(' ');
      cells.push_back(begin == cell.npos ? "" : cell.substr(begin, end + 1 - begin));
    }
    if (cells.size() < 2 + kColumns.size() || !cells[1].starts_with('`')) continue;
    std::istringstream ops(cells[1].substr(1, cells[1].size() - 2));
    for (std::string op; ops >> op;)
      for (size_t c = 0; c < kColumns.size(); ++c) table[op][c] = cells[2 + c];
  }
  return table;
}

// A row for all operators of which the columns say the same.
inline std::string as_markdown(const Table& table) {
  std::map<std::array<std::string, kColumns.size()>, std::string> rows;
  for (auto& [op, columns] : table) {
    std::string& ops = rows[columns];
    ops += (ops.empty() ? "" : " ") + op;
  }
  std::map<std::string, std::string> by_first;
  for (auto& [columns, ops] : rows) {
    std::string& row = by_first[ops] = "| `" + ops + "` |";
    for (auto& column : columns) row += column.empty() ? "  |" : " " + column + " |";
  }
  std::string text = "| operators | `cpu` | `onednn` | `cuda` |\n|---|---|---|---|\n";
  for (auto& [ops, row] : by_first) text += row + "\n";
  return text;
}

// The column on the page is what runs.
inline void require(const std::filesystem::path& document, std::string_view column, Device device,
                    std::string_view plugin) {
  const auto found = measured(device, plugin);
  BOOST_REQUIRE_MESSAGE(!found.empty(), "nothing ran by " << plugin << " on " << device.str());
  const char *begin = "dtypes: written by tests/ops/dtypes.h", *end = "end of dtypes";
  const auto [text, from, to] = page::between(document, begin, end);
  const Table before = read(text.substr(from, to - from));
  Table table;
  for (const Op* op = all_ops(); op; op = op->next) {
    if (op->execute) continue;
    auto& columns = table[op->name];
    if (const auto known = before.find(op->name); known != before.end()) columns = known->second;
    // The emulated device has no compiler for it; what the page says is that of a GPU.
    if (column == "cuda" && op->name == std::string_view("fused")) continue;
    const auto runs = found.find(op->name);
    for (size_t c = 0; c < kColumns.size(); ++c)
      if (kColumns[c] == column) columns[c] = runs == found.end() ? "" : words(runs->second);
  }
  page::require(document, begin, end, as_markdown(table));
}

}  // namespace tenon::dtypes
