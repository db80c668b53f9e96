// Small backends, in the registry that the core asks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tenon/core/error.h>
#include <tenon/tenon.h>

#include "plugin_folder.h"

namespace tenon::test {

// "joint" computes abs of contiguous f32 and nothing else; its overlay computes nothing unless
// asked. "primitives" is the cpu plugin without what can be decomposed, and without normal.
struct Backends {
  Backends() {
    folder.add("joint", {{"name", "joint"}, {"version", "1.0"}});
    folder.add("joint_overlay", {{"name", "joint_overlay"},
                                 {"version", "1.0"},
                                 {"kind", "overlay"},
                                 {"overlays", "joint"},
                                 {"priority", 1}});
    plugins::registry().add_path(folder.path());
    plugins::registry().add_path(test::build_dir() + "/tests/primitives");
  }
  PluginFolder folder;
};
inline void backends() { static Backends once; }

// A way in which every function of "joint" can fail (TENON_TEST_FAULT is the function's name and
// the suffix), what the error then says, and the remedy that it names. An error with a reason is no
// fault of the plugin and is passed on.
struct Way {
  std::string suffix, said, remedy;
  bool passed_on = false;  // the plugin's own words, with nothing about the plugin
};
inline const std::vector<Way> kWays = {
    {.suffix = "_throws",
     .said = "let an exception out: a thrown text",
     .remedy = "; catch it in the plugin and return a tn_error"},
    {.suffix = "_throws_int",
     .said = "let an exception of unknown type out",
     .remedy = "; catch it in the plugin and return a tn_error"},
    {.suffix = "_error", .said = "a reason of its own", .remedy = "", .passed_on = true},
    {.suffix = "_silent_error",
     .said = "an error without a message",
     .remedy = "; set tn_error.message",
     .passed_on = true},
    {.suffix = "_short_error",
     .said = "an error object that is too short to read",
     .remedy = "; set its struct_size to sizeof(tn_error)"},
    {.suffix = "_immortal_error",
     .said = "an error object without destroy",
     .remedy = "; set it to the function that frees the error"},
    {.suffix = "_error_of_no_code",
     .said = "a reason of its own (an error with the code 99, which is none of ABI 1.",
     .remedy = "; it counts as TN_CODE_INTERNAL",
     .passed_on = true},
    {.suffix = "_error_with_escapes",
     .said = "\\x1b[31mred\\x1b[0m\nand \\x9b2J [where=\\x07]",
     .remedy = "",
     .passed_on = true},
    {.suffix = "_detailless_error",
     .said = "an error object whose details are NULL, but num_details is not 0",
     .remedy = "; set both or neither"},
    {.suffix = "_error_of_code_0",
     .said = "a reason of its own (an error with the code 0, which is none of ABI 1.",
     .remedy = "; it counts as TN_CODE_INTERNAL",
     .passed_on = true},
    {.suffix = "_error_with_holes",
     .said = "an error without a message",
     .remedy = "; set tn_error.message [?=?]",
     .passed_on = true},
    {.suffix = "_error_of_countless_details",
     .said = "an error object that says it has 18446744073709551615 details, more than the 256",
     .remedy = "; look at how num_details is computed: a reason of its own"},
    {.suffix = "_error_that_throws",
     .said = "a reason of its own",
     .remedy = "",
     .passed_on = true}};

// A fault may have shown several times; each is told once.
inline void forget_failures() {
  for (int i = 0; i < 20; ++i) {
    try {
      return synchronize();
    } catch (const Error&) {
    }
  }
}

}  // namespace tenon::test
