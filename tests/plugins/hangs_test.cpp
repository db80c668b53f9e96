// Functions of a plugin that never end: the host says which one it is, and gives it up where it has
// a limit.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "devices_command.h"
#include "plugin_folder.h"
#include "process/child.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(hangs_test)

using namespace tenon::test;

BOOST_AUTO_TEST_CASE(the_start_of_the_checks_ends_at_the_limit) {
  PluginFolder folder;
  folder.add("joint", kJoint);
  struct Hang {
    std::string fault, function;
  };
  for (auto& [fault, function] : std::vector<Hang>{{"load_hangs", "a constructor of the library"},
                                                   {"init_hangs", "init"},
                                                   {"device_open_hangs", "device_open"}})
    for (const std::string mode : {"", "--no-check"}) BOOST_TEST_CONTEXT(fault << " " << mode) {
        std::vector<std::string> command = {"conformance",
                                            "--op",
                                            "relu",
                                            "--limit",
                                            "2",
                                            "--plugin",
                                            folder.file("joint.tenon.json")};
        if (!mode.empty()) command.push_back(mode);
        const Outcome outcome = tenon_command(folder, command, {"TENON_TEST_FAULT=" + fault});
        BOOST_TEST(outcome.status == 1, outcome.output);
        require_has(outcome.output, "FAILED start: " + function +
                                        " of plugin joint did not end within 2 s and was killed "
                                        "(--limit): it had written:\nit hangs\n");
      }
}

BOOST_AUTO_TEST_SUITE_END()
