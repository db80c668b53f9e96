// Each field of a plugin's entry and each function of its table, wrong by itself, and the functions
// that give something back: every way ends in an error or a warning that names the plugin, the
// place and what to do.
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/error.h>
#include <tenon/tenon.h>

#include "desc.h"
#include "joint_folder.h"
#include "logged.h"

BOOST_AUTO_TEST_SUITE(table_faults_test)

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr const char* kRequired[] = {"device_count", "device_open",  "device_close", "device_info",
                                     "memory_kinds", "memory_alloc", "memory_free",  "copy",
                                     "supports",     "plan_create"};
constexpr const char* kOfStreams[] = {"stream_create", "stream_destroy", "event_create",
                                      "event_destroy", "event_record",   "stream_wait",
                                      "event_query",   "event_wait"};

// A registry of its own, because a library is loaded and started once.
struct Loaded {
  explicit Loaded(const std::string& fault, bool overlay = false)
      : broken(overlay ? "TENON_TEST_OVERLAY_FAULT" : "TENON_TEST_FAULT", fault) {
    folder.add("joint", {{"name", "joint"}, {"version", "1.0"}});
    if (overlay)
      folder.add("joint_overlay", {{"name", "joint_overlay"},
                                   {"version", "1.0"},
                                   {"kind", "overlay"},
                                   {"overlays", "joint"},
                                   {"priority", 1}});
  }
  Environment broken;
  PluginFolder folder;
  Registry registry{folder.only()};
};

void expect_part(const std::string& text, const std::string& part) {
  BOOST_TEST(has(text, part), "\"" << text << "\" lacks " << part);
}

void check_refused(const std::string& fault, const std::string& reason) {
  BOOST_TEST_CONTEXT(fault) {
    Loaded joint(fault);
    const std::string text = error_of([&] { joint.registry.load("joint"); });
    expect_part(text, reason);
    expect_part(text, joint.folder.file("joint.tenon.json"));
    expect_part(text.substr(text.find(reason)), "; ");
  }
}

void check_overlay_refused(const std::string& fault, const std::string& reason) {
  BOOST_TEST_CONTEXT(fault) {
    Loaded joint(fault, true);
    joint.registry.load("joint");
    const std::string text = logged([&] { BOOST_TEST(joint.registry.overlays("joint").empty()); });
    const auto entry = entry_of(joint.registry.report(), "joint_overlay.tenon.json");
    BOOST_TEST(plugins::to_string(entry.status) == "refused");
    expect_part(entry.reason, reason);
    expect_part(text, "joint_overlay");
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_field_of_the_entry) {
  for (auto& [fault, reason] : std::initializer_list<std::pair<const char*, const char*>>{
           {"entry_of_no_size", "tn_plugin_entry says it has 0 bytes, less than the 72"},
           {"entry_of_an_odd_size", "73 bytes, "},
           {"entry_without_magic", "wrong magic number; set magic to TN_PLUGIN_MAGIC"},
           {"entry_of_abi_0", "the manifest says 1.3, the library 0.3; they must be of one build"},
           {"entry_without_name", "does not say the name; set tn_plugin_info.name"},
           {"entry_with_an_empty_name", "the manifest says \"joint\", the library \"\""},
           {"entry_with_bytes_for_a_name", R"(says "joint", the library "\xff\x1b")"},
           {"entry_without_version", "does not say the version; set tn_plugin_info.version"},
           {"entry_of_kind_7", "the kind: the manifest says device, the library 7"},
           {"entry_without_init", "has no init function; set tn_plugin_info.init"},
           {"table_of_no_size", "init filled 0 bytes of the function table, less than the"},
           {"table_of_half_a_function", "which end inside of a function pointer; set"}})
    check_refused(fault, reason);
  check_overlay_refused("entry_without_overlays",
                        "does not say what it overlays; set tn_plugin_info.overlays");
}

BOOST_AUTO_TEST_CASE(each_function_that_is_missing) {
  for (const std::string function : kRequired)
    check_refused("table_without_" + function,
                  "init left required functions NULL: " + function + "; set them in the table");
  for (const std::string function : {"device_open", "device_close", "supports", "plan_create"})
    check_overlay_refused("table_without_" + function, "functions NULL: " + function + "; set");
  for (const std::string function : kOfStreams) {
    Loaded joint("table_without_" + function);
    auto& backend = joint.registry.load("joint");
    BOOST_CHECK_NO_THROW(backend.open_device(0));  // computes on the caller's thread
    const std::string text = error_of([&] { backend.open_device(1); });
    expect_part(text, function + " is NULL; set the flag, or offer all of stream_* and event_*");
    expect_part(text, joint.folder.file("joint.so"));
  }
}

// These cannot fail; what they throw is told, and nothing is lost.
BOOST_AUTO_TEST_CASE(what_gives_back_and_throws_is_a_warning) {
  backends();
  const Device device("joint", 1041);
  auto& backend = plugins::registry().load("joint");
  auto& api = backend.api();
  auto* handle = backend.open_device(1041);
  (void)full({4}, 1.0).to(device);
  const auto warns = [&](const std::string& function, const std::string& fault, auto&& call) {
    for (auto& [suffix, what] :
         {std::pair("_throws", "let an exception out: a thrown text"),
          std::pair("_throws_int", "let an exception of unknown type out")}) {
      Environment broken("TENON_TEST_FAULT", fault + suffix);
      expect_part(logged(call), "joint.so): " + function + " " + what + "; catch it in the plugin");
    }
  };
  tn_stream* stream = nullptr;
  tn_event* event = nullptr;
  warns("stream_destroy", "stream_destroy", [&] {
    BOOST_TEST(!api.stream_create(handle, &stream));
    api.stream_destroy(stream);
  });
  warns("event_destroy", "event_destroy", [&] {
    BOOST_TEST(!api.event_create(handle, &event));
    api.event_destroy(event);
  });
  warns("memory_free", "memory_free", [&] {
    (void)full({4}, 1.0).to(device);
    empty_cache(device);
  });
  int64_t n = 100;
  warns("a plan's destroy", "plan_create_huge_workspace,plan_destroy", [&] {
    expect_part(error_of([&] { abs(full({++n}, 1.0).to(device)).wait(); }), "which no memory has");
  });
  for (auto& [fault, what] : {std::pair("device_close_throws", "device_close let an exception out"),
                              std::pair("shutdown_throws", "shutdown let an exception out")}) {
    Loaded joint(fault);
    joint.registry.load("joint").open_device(1);
    expect_part(logged([&] { joint.registry.close(); }), what);
  }
}

BOOST_AUTO_TEST_CASE(what_ends_and_fails_is_a_warning) {
  for (auto& way : kWays) {
    Loaded joint("drain" + way.suffix);
    joint.registry.load("joint").open_device(1);
    const std::string text = logged([&] { joint.registry.drain(); });
    for (auto& part : {std::string("[joint] warning: drain: "), way.said, way.remedy})
      expect_part(text, part);
    joint.registry.close();
  }
}

BOOST_AUTO_TEST_CASE(supports_fails_in_every_way) {
  Loaded joint("");
  auto& backend = joint.registry.load("joint");
  auto* device = backend.open_device(0);
  const Desc x({3});
  const tn_tensor_desc* const all[] = {&x};
  tn_op_request request{};
  request.struct_size = sizeof request;
  request.op = "abs";
  request.num_inputs = request.num_outputs = 1;
  request.inputs = request.outputs = all;
  BOOST_TEST(plugins::take_message(backend.api().supports(device, &request)) == "");
  for (auto& way : kWays) {
    Environment broken("TENON_TEST_FAULT", "supports" + way.suffix);
    const std::string text = plugins::take_message(backend.api().supports(device, &request));
    for (auto& part : {way.said, way.remedy}) expect_part(text, part);
    if (!way.passed_on) expect_part(text, "joint.so): supports ");
  }
}

// Sizes that no struct has, flags that nobody knows, names that are absent or never end, and the
// largest numbers are no faults: the host needs none of them.
BOOST_AUTO_TEST_CASE(what_is_odd_and_allowed_works) {
  backends();
  Environment odd("TENON_TEST_FAULT", "odd_but_allowed");
  for (uint32_t index : {1044u, 1045u}) {
    const Device device("joint", index);
    Tensor x = full({7}, -2.0).to(device);
    for (int i = 0; i < 100; ++i) x = abs(x);
    BOOST_TEST(x.to_vector<float>() == std::vector<float>(7, 2), boost::test_tools::per_element());
    auto& backend = plugins::registry().load("joint");
    const auto info = backend.device_info(backend.open_device(index));
    BOOST_TEST(std::string(info.name) == std::string(127, 'x'));
  }
}

BOOST_AUTO_TEST_SUITE_END()
