// The joint of our own backends, and of the device of TENON_TEST_DEVICE: the checks of
// conformance/joint. And of a plugin in which one thing is wrong: they find it.
#include <boost/test/unit_test.hpp>

#include <tenon/conformance/joint/joint.h>
#include <tenon/plugins/host/registry.h>

#include "plugins/plugin_folder.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(joint)

using namespace tenon::conformance;
using tenon::Device;

namespace {

// The failures, a line each.
std::string failures_of(const Device& device) {
  std::string text;
  for (auto& check : joint_checks(device))
    if (const Result r = result_of(check); r.status == Status::failed)
      text += r.name + ": " + r.detail + "\n";
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(our_own_keep_their_promises) {
  size_t passed = 0;
  for (auto& check : joint_checks(tenon::default_device())) {
    const Result r = result_of(check);
    BOOST_CHECK_MESSAGE(r.status != Status::failed, r.op << ": " << r.name << ": " << r.detail);
    passed += r.status == Status::passed;
  }
  BOOST_TEST(passed >= 15u);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_found) {
  tenon::test::PluginFolder folder;
  folder.add("joint", {{"name", "joint"}, {"version", "1.0"}});
  tenon::plugins::registry().add_path(folder.path());
  const std::string none[2] = {failures_of(Device("joint", 0)), failures_of(Device("joint", 1))};
  BOOST_TEST(none[0] == "");
  BOOST_TEST(none[1] == "");
  // What writes where it must not is found by the sanitizers, which end the process, and their
  // allocators do not tell how much is in use.
  if (tenon::test::kSanitized) return;
  struct {
    const char *fault, *said;
  } const planted[] = {
      {"memory_alloc_overlaps", "overlaps an earlier allocation"},
      {"memory_alloc_endless", "reported success"},
      {"memory_alloc_misaligned", "not aligned"},
      {"copy_forgets_a_byte", "expected"},
      {"copy_writes_beside", "also changed byte 132"},
      {"copy_throws", "let an exception out"},
      {"unknown_accepted", "of an operator that nobody knows reported success"},
      {"unknown_accepted", "of an attribute that nobody knows reported success"},
      {"error_of_another_code", "failed with code 7 instead of 3"},
      {"plan_create_silent_error", "instead of 3"},
      {"device_info_overruns", "device_info wrote byte"},
      {"run_writes_the_next_element", "element 1030 of abs is"},
      {"event_create_null", "gave no event"},
  };
  for (auto& p : planted) {
    // Streams of this plugin are only names, so its events cannot come too early or too late.
    tenon::test::Environment fault("TENON_TEST_FAULT", p.fault);
    const std::string found = failures_of(Device("joint", 1));
    BOOST_TEST(tenon::test::has(found, p.said), p.fault << " is not found; found is\n" << found);
  }
  for (auto [name, said] : {std::pair("error_leaks", "a refusal by supports leaves about "),
                            std::pair("plan_leaks", "a plan that is made and destroyed leaves ")}) {
    tenon::test::Environment fault("TENON_TEST_FAULT", name);
    BOOST_TEST(tenon::test::has(failures_of(Device("joint", 0)), said), name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
