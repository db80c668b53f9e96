// What the real plugin says on a machine that cannot use it. It is the one that was built with
// nvcc, not the emulated one.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <boost/test/unit_test.hpp>
#include <dlfcn.h>

#include "files.h"
#include "places.h"
#include "support/sanitized.h"

namespace {

namespace fs = std::filesystem;
using tenon::test::build_dir;

bool there_is_a_driver() { return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr; }

struct Output {
  int status;
  std::string text;
};
Output tenon_command(const std::string& before, const std::string& arguments) {
  TempFolder folder;
  const std::string out = (folder / "out").string();
  const int status = std::system(
      (before + " '" + build_dir() + "/bin/tenon' " + arguments + " >'" + out + "' 2>&1 </dev/null")
          .c_str());
  return {status, read_bytes(out)};
}

bool plugin_is_there() { return fs::exists(build_dir() + "/lib/tenon/plugins/libtenon_cuda.so"); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_machine_without_a_driver_is_told_so) {
  if (!plugin_is_there()) {
    BOOST_TEST_MESSAGE("skipped: the cuda plugin was not built (no nvcc)");
    return;
  }
  if (there_is_a_driver()) {
    BOOST_TEST_MESSAGE("skipped: this machine has an NVIDIA driver");
    return;
  }
  auto devices = tenon_command("", "devices");
  BOOST_TEST(devices.status == 0);
  BOOST_TEST(has(devices.text, "cpu:0"), devices.text);
  BOOST_TEST(has(devices.text, "no NVIDIA driver is installed (libcuda.so.1: "), devices.text);
}

BOOST_AUTO_TEST_CASE(a_driver_that_is_too_old_is_told_from_none) {
  if (!plugin_is_there()) {
    BOOST_TEST_MESSAGE("skipped: the cuda plugin was not built (no nvcc)");
    return;
  }
  auto devices = tenon_command("LD_LIBRARY_PATH='" + build_dir() + "/tests/old_driver'", "devices");
  BOOST_TEST(devices.status == 0);
  BOOST_TEST(
      has(devices.text,
          "the NVIDIA driver is too old: it knows CUDA 11.4, this plugin was built with CUDA "),
      devices.text);
  BOOST_TEST(has(devices.text, "cpu:0"), devices.text);
}

BOOST_AUTO_TEST_CASE(a_device_that_is_asked_for_all_the_same_is_an_error_with_the_reason) {
  if (tenon::test::kSanitized) return;  // where no examples are built
  if (!plugin_is_there()) {
    BOOST_TEST_MESSAGE("skipped: the cuda plugin was not built (no nvcc)");
    return;
  }
  if (there_is_a_driver()) {
    BOOST_TEST_MESSAGE("skipped: this machine has an NVIDIA driver");
    return;
  }
  TempFolder folder;
  const std::string out = (folder / "out").string();
  const int status = std::system(
      ("'" + build_dir() + "/bin/mlp' --synthetic --device cuda:0 >'" + out + "' 2>&1").c_str());
  BOOST_TEST(status != 0);
  BOOST_TEST(has(read_bytes(out), "no NVIDIA driver is installed"), read_bytes(out));
}
