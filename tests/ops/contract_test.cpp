// docs/operators.md has a row for each operator that plugins are asked for: that of its source.
#include "ops/contract.h"

#include <filesystem>

#include <boost/test/unit_test.hpp>

#include "places.h"

BOOST_AUTO_TEST_SUITE(levels)

BOOST_AUTO_TEST_CASE(each_operator_has_its_row) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(tenon::test::reference_dir()) / "../..";
  const fs::path ops = root / "core/ops", document = root / "docs/operators.md";
  if (!fs::exists(document)) return;  // it is not carried to other machines
  tenon::contract::require_rows(ops);
  for (auto& families : tenon::contract::kTables) {
    std::string names;
    for (auto& family : families) names += (names.empty() ? "" : ", ") + family;
    tenon::page::require(document, names + ": written by tests/ops/contract.h", "end of " + names,
                         tenon::contract::table_of(ops, families));
  }
}

BOOST_AUTO_TEST_SUITE_END()
