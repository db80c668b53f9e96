// Extension tables of a plugin that breaks the contract: as for its other functions, every way ends
// in an error that names the plugin, the function and what it did, and the next call works.
#include <functional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/error.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "plugin_folder.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(extension_faults_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// The plugin has one operator; the cpu computes the others.
struct Joint {
  Joint() {
    folder.add("joint", {{"name", "joint"}, {"version", "1.0"}});
    plugins::registry().add_path(folder.path());
  }
  PluginFolder folder;
  Environment fallback{"TENON_CPU_FALLBACK", "1"};
};

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

// A fault may have shown several times; each is told once.
void forget_failures() {
  for (int i = 0; i < 20 && message_of([] { synchronize(); }) != "nothing was thrown"; ++i) {
  }
}

const std::vector<std::pair<std::string, std::string>> kWays = {
    {"_throws", "let an exception out: a thrown text"},
    {"_throws_int", "let an exception of unknown type out"},
    {"_error", "a reason of its own"},
    {"_silent_error", "an error without a message"},
    {"_short_error", "too short to read"},
    {"_immortal_error", "without destroy"}};

void check_fault(const std::string& fault, const std::string& said,
                 const std::function<void()>& action) {
  BOOST_TEST_CONTEXT(fault) {
    std::string text;
    {
      Environment broken("TENON_TEST_FAULT", fault);
      text = message_of(action);
    }
    BOOST_TEST(has(text, said), "\"" << text << "\" lacks " << said);
    if (!fault.ends_with("_error")) BOOST_TEST(has(text, "plugin joint ("), text);
    forget_failures();
    action();
  }
}

// Records abs and replays it once.
void capture() {
  const Tensor x = full({3}, -2.0).to("joint:1");
  Tensor y = abs(x);
  auto graph = StreamGraph::capture("joint:1", [&] { y = abs(x); });
  graph.replay();
  synchronize("joint:1");
}

}  // namespace

BOOST_AUTO_TEST_CASE(when_a_stream_is_captured) {
  Joint joint;
  capture();
  for (auto& [way, said] : kWays)
    for (const char* function : {"capture_begin", "capture_end", "capture_launch"})
      check_fault(function + way, said, capture);
  check_fault("capture_end_null", "a capture's end reported success, but gave no graph", capture);
  // What cannot fail is only a warning.
  Environment broken("TENON_TEST_FAULT", "capture_destroy_throws");
  capture();
}

BOOST_AUTO_TEST_CASE(a_table_that_is_short_or_incomplete_counts_as_none) {
  Joint joint;
  for (const char* fault : {"tables_short", "tables_incomplete", "extension_throws"}) {
    Environment broken("TENON_TEST_FAULT", fault);
    BOOST_TEST(has(message_of(capture), "does not offer tn.stream_capture"), fault);
  }
  capture();
}

BOOST_AUTO_TEST_SUITE_END()
