// Processes that fork or end while the onednn overlay computes: scenarios/overlay.cpp.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <boost/test/unit_test.hpp>

#include "child.h"
#include "places.h"

BOOST_AUTO_TEST_SUITE(overlay_test)

namespace {

Outcome run(const std::string& scenario) {
  // Which of the plans is estimated to be the faster one differs from processor to processor.
  std::vector<std::string> environment{"TENON_TRACE=plans",
                                       "TENON_PLUGIN_PATH=", "TENON_PREFER=onednn"};
  // Memory that other threads used at a fork has no owner in the child: the address sanitizer would
  // call it a leak.
  if (const char* options = std::getenv("ASAN_OPTIONS"))
    environment.push_back("ASAN_OPTIONS=" + std::string(options) + ":detect_leaks=0");
  return run_child({tenon::test::build_dir() + "/tests/process/process_scenarios", scenario},
                   environment);
}

void expect_well(const std::string& scenario, const std::string& said = "") {
  const Outcome outcome = run(scenario);
  BOOST_TEST(outcome.status == 0, outcome.output);
  BOOST_TEST(outcome.output.find(said) != std::string::npos);
  if (!std::filesystem::exists(tenon::test::build_dir() + "/lib/tenon/plugins/onednn.tenon.json"))
    return;
  const auto plan = outcome.output.find("plan: conv2d: "), end = outcome.output.find('\n', plan);
  BOOST_REQUIRE(plan != std::string::npos);
  BOOST_TEST(outcome.output.substr(plan, end - plan).find(" by onednn") != std::string::npos);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_child_computes_with_the_plans_and_weights_of_its_parent) {
  expect_well("child_of_a_process_whose_overlay_computes");
}

BOOST_AUTO_TEST_CASE(children_do_while_threads_of_their_parent_make_plans) {
#if !defined(__SANITIZE_ADDRESS__)  // its allocator does not survive that (ending_test.cpp)
  expect_well("children_of_a_process_that_makes_plans_of_the_overlay");
#endif
}

BOOST_AUTO_TEST_CASE(children_do_while_compiled_functions_of_their_parent_make_plans) {
#if !defined(__SANITIZE_ADDRESS__)
  expect_well("children_of_a_process_whose_functions_make_plans_of_the_overlay");
#endif
}

BOOST_AUTO_TEST_CASE(a_process_ends_while_its_overlay_computes) {
  expect_well("ends_while_the_overlay_computes", "computed\n");
}

BOOST_AUTO_TEST_SUITE_END()
