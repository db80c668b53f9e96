// Extension tables of a plugin that breaks the contract: as for its other functions, every way ends
// in an error that names the plugin, the function and what it did, and the next call works.
#include <functional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/error.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "joint_folder.h"
#include "logged.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(extension_faults_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// The plugin has one operator; the cpu computes the others.
struct Joint {
  Joint() { backends(); }
  Environment fallback{"TENON_CPU_FALLBACK", "1"};
};

std::vector<std::string> parts_of(const Way& way) {
  return {way.said, way.remedy, way.passed_on ? "joint" : "plugin joint ("};
}

void check_fault(const std::string& fault, const std::vector<std::string>& parts,
                 const std::function<void()>& action) {
  BOOST_TEST_CONTEXT(fault) {
    std::string text;
    {
      Environment broken("TENON_TEST_FAULT", fault);
      text = error_of(action);
    }
    for (auto& part : parts) BOOST_TEST(has(text, part), "\"" << text << "\" lacks " << part);
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

// A step on two devices. Those that could not be joined are not tried again.
void step(const char* one = "joint:1", const char* two = "joint:3") {
  nn::Linear linear(2, 1);
  nn::DataParallel model(linear, {one, two});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  for (int i = 0; i < 2; ++i) {
    optimizer.zero_grad();
    model(ones({4, 2}, {.device = one})).sum().backward();
    optimizer.step();
  }
  model(ones({4, 2}, {.device = one})).sum().item<float>();
  synchronize();  // copies may have done what failed, and then only this tells
}

}  // namespace

BOOST_AUTO_TEST_CASE(when_a_stream_is_captured) {
  Joint joint;
  capture();
  for (auto& way : kWays)
    for (const char* function : {"capture_begin", "capture_end", "capture_launch"})
      check_fault(function + way.suffix, parts_of(way), capture);
  check_fault("capture_end_null",
              {"plugin joint (", "a capture's end reported success, but gave no graph; set *graph"},
              capture);
  // What cannot fail is only a warning.
  Environment broken("TENON_TEST_FAULT", "capture_destroy_throws");
  capture();
}

BOOST_AUTO_TEST_CASE(a_table_that_is_short_or_incomplete_counts_as_none) {
  Joint joint;
  for (const char* fault : {"tables_short", "tables_incomplete", "extension_throws"}) {
    Environment broken("TENON_TEST_FAULT", fault);
    BOOST_TEST(has(error_of([] { capture(); }), "does not offer tn.stream_capture"), fault);
  }
  capture();
}

// Nothing fails: the profiler shows when work was queued, and the log says why.
BOOST_AUTO_TEST_CASE(when_a_profiler_asks_for_times) {
  Joint joint;
  uint32_t index = 21;
  auto profile = [&](const std::string& fault, bool on_device) {
    Environment broken("TENON_TEST_FAULT", fault);
    const Device device("joint", index += 2);
    return logged([&] {
      profiler::Profiler profiler;
      BOOST_TEST(abs(full({3}, -2.0).to(device)).to_vector<float>()[0] == 2.0f);
      profiler.stop();
      for (auto& e : profiler.events()) {
        BOOST_TEST((e.queued <= e.began && e.began <= e.ended && e.ended <= profiler.seconds()));
        if (e.name == "abs") BOOST_TEST(e.on_device == on_device, fault);
      }
    });
  };
  BOOST_TEST(profile("", true) == "");
  BOOST_TEST(profile("elapsed_back", true) == "");
  for (auto& way : kWays) {
    const std::string text = profile("elapsed" + way.suffix, false);
    for (auto& part : parts_of(way)) BOOST_TEST(has(text, part), text << " lacks " << part);
    BOOST_TEST(has(text, "show when work was queued on this device instead of"), text);
  }
  BOOST_TEST(has(profile("elapsed_never", false), "elapsed says that it is nan ms"));
  for (const char* fault : {"tables_short", "tables_incomplete"}) {
    BOOST_TEST(has(profile(fault, false), "its table tn.profiling is not used: it "));
    // The streams of another device have the same table.
    BOOST_TEST(!has(profile(fault, false), "its table tn.profiling is not used: it "));
  }
}

BOOST_AUTO_TEST_CASE(when_devices_are_joined) {
  Joint joint;
  // Where they cannot be, copies do it.
  struct {
    const char *fault, *one, *two;
  } const ways[] = {{"communicator_create_throws", "joint:5", "joint:7"},
                    {"communicator_create_null", "joint:9", "joint:11"}};
  for (auto& way : ways) {
    Environment broken("TENON_TEST_FAULT", way.fault);
    BOOST_CHECK_NO_THROW(step(way.one, way.two));
  }
}

BOOST_AUTO_TEST_CASE(when_devices_sum) {
  Joint joint;
  step();
  for (auto& way : kWays)
    for (const char* function : {"all_reduce", "broadcast", "group_begin", "group_end"})
      check_fault(function + way.suffix, parts_of(way), [] { step(); });
}

BOOST_AUTO_TEST_SUITE_END()
