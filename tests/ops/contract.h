// The tables of docs/operators.md that say what each operator takes and gives. Their rows stand in
// comments above the operators, so that whoever writes or changes one has it before them:
//
//   // | `softmax log_softmax` | x -> y | `dim` | what to know |
#pragma once

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/dispatch/op.h>

#include "ops/page.h"

namespace tenon::contract {

namespace fs = std::filesystem;

inline constexpr std::string_view kRow = "// | `";

// The rows in the sources of a family, each joined to one line.
inline std::vector<std::string> rows_of(const fs::path& family) {
  std::vector<std::string> rows;
  for (auto& entry : fs::directory_iterator(family)) {
    if (entry.path().extension() != ".cpp") continue;
    std::istringstream file(page::read(entry.path()));
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
      const bool first = line.starts_with(kRow);
      inside = first || (inside && line.starts_with("//   "));
      if (first) rows.push_back(line.substr(3));
      if (inside && !first) rows.back() += line.substr(4);
    }
  }
  return rows;
}

// The names in a row's first cell.
inline std::vector<std::string> names_in(const std::string& row) {
  std::istringstream cell(row.substr(3, row.find('`', 3) - 3));
  std::vector<std::string> names;
  for (std::string name; cell >> name;) names.push_back(name);
  return names;
}

// The tables of the page, each with the rows of these families.
inline const std::vector<std::vector<std::string>> kTables = {
    {"pointwise"}, {"creation", "random", "shape"},
    {"reduction"}, {"linalg", "convolution"},
    {"pooling"},   {"normalization", "loss"},
    {"attention"}, {"recurrent"},
    {"indexing"},  {"optimizer"}};

// The rows of some families by the names of their operators.
inline std::string table_of(const fs::path& ops, const std::vector<std::string>& families) {
  std::vector<std::string> rows;
  for (auto& family : families)
    for (auto& row : rows_of(ops / family)) rows.push_back(row);
  // Not by whole lines, in which `x_backward` would come before `x`.
  std::ranges::sort(rows, {}, [](auto& row) { return row.substr(0, row.find('`', 3)); });
  std::string text =
      "| op | inputs -> outputs | attributes; scalars | notes |\n|---|---|---|---|\n";
  for (auto& row : rows) text += row + "\n";
  return text;
}

// Each operator that a plugin is asked for has one row, of four cells, and each row its operators.
inline void require_rows(const fs::path& ops) {
  std::set<std::string> asked, known;
  for (const Op* op = all_ops(); op; op = op->next)
    if (!op->execute) asked.insert(op->name);
  for (auto& family : fs::directory_iterator(ops)) {
    if (!family.is_directory()) continue;
    const std::vector<std::string> rows = rows_of(family.path());
    const bool shown = std::ranges::any_of(kTables, [&](auto& families) {
      return std::ranges::count(families, family.path().filename().string()) > 0;
    });
    BOOST_CHECK_MESSAGE(shown || rows.empty(), family.path() << " has rows, but no table");
    for (auto& row : rows) {
      size_t bars = 0;
      for (size_t i = 0; i < row.size(); ++i)
        bars += row[i] == '|' && (i == 0 || row[i - 1] != '\\');
      BOOST_CHECK_MESSAGE(bars == 5 && row.ends_with('|'), "not four cells: " << row);
      for (auto& name : names_in(row)) {
        BOOST_CHECK_MESSAGE(asked.contains(name), name << " has a row, but is no operator");
        BOOST_CHECK_MESSAGE(known.insert(name).second, name << " has two rows");
      }
    }
  }
  for (auto& name : asked)
    BOOST_CHECK_MESSAGE(known.contains(name),
                        name << " has no row above it in core/ops: " << kRow << name << "` | …");
}

}  // namespace tenon::contract
