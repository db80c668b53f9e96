// What plugins say and are told: manifests, and the programs of `fused`.
#include <algorithm>

#include <boost/test/unit_test.hpp>

#include <tenon/plugins/host/plugin_check.h>
#include <tenon/plugins/sdk/requests/fused.h>

#include "files.h"
#include "fuzz/targets.h"
#include "plugins/ask.h"

BOOST_AUTO_TEST_SUITE(plugins_test)

using namespace tenon;
using namespace tenon::test::fuzz;

namespace {

// The library that it names is not there, which is found after everything in the manifest.
bool manifest_is_refused(std::string_view bytes) {
  static const TempFolder folder;
  static const std::string path = folder / "good.tenon.json";
  write_bytes(path, bytes);
  for (const plugins::Finding& finding : plugins::check_plugin(path))
    if (finding.kind == plugins::Finding::fault && !has(finding.what, "good.so")) return true;
  return false;
}
Target manifest() {
  return {.name = "manifest",
          .one_input = manifest_is_refused,
          .seeds = seed_files(".tenon.json"),
          .words = {"\"abi\":", "\"major\":", "\"kind\":", "\"overlay\"", "\"library\":", "../",
                    "\"cpu_features\":", "[", "]", "{", "}", ",", "-1", "1e99", "\"\\u0000\"",
                    "\"preference\":", "99999999999999999999"}};
}

bool program_is_refused(std::string_view bytes) {
  const std::string text(bytes.substr(0, bytes.find('\0')));
  try {
    test::Ask("fused")
        .in(test::tensor({2, 3}))
        .in(test::tensor({2, 3}))
        .in(test::tensor({2, 3}, TN_BOOL))
        .out(test::tensor({2, 3}, TN_I64))
        .scalars(3)
        .text("program", text.c_str())
        .read(sdk::FusedRequest::from);
    return false;
  } catch (const sdk::Error&) {
    return true;
  }
}
Target program() {
  return {.name = "program",
          .one_input = program_is_refused,
          .seeds = seed_files(".fused"),
          .words = {"x0", "t0", "_", "#1", "#3", "add(", "): f32", "; ", " -> ", "[n=2]",
                    "[reverse=true]", "where(", "copy(", "4000000000", "bf16", "i64", ","},
          .runs = 4000};
}

}  // namespace

BOOST_AUTO_TEST_CASE(manifests) { try_inputs(manifest()); }
BOOST_AUTO_TEST_CASE(programs) { try_inputs(program()); }

BOOST_AUTO_TEST_SUITE_END()
