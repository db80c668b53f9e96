// What the logger writes, and what it keeps to itself.
#include <cstdio>

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/core/base/log.h>

#include "plugin_folder.h"

BOOST_AUTO_TEST_SUITE(log_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// What `body` writes to stderr.
template <class Body>
std::string captured(const std::string& path, Body body) {
  std::fflush(stderr);
  int before = dup(2), file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(file, 2);
  body();
  std::fflush(stderr);
  dup2(before, 2);
  close(before);
  close(file);
  return read_text(path);
}

}  // namespace

// In a process of its own, because the level is read once.
BOOST_AUTO_TEST_CASE(a_level_that_there_is_not_is_told) {
  PluginFolder folder;
  Environment level("TENON_LOG", "\x1b[31m" + std::string(100'000, 'e'));
  const pid_t child = fork();
  if (child == 0) {
    captured(folder.file("stderr"), [] {
      log_message(TN_LOG_INFO, "npu", "clock 4");
      log_message(TN_LOG_WARNING, "npu", "hot");
    });
    _exit(0);
  }
  int status = 1;
  BOOST_REQUIRE_EQUAL(waitpid(child, &status, 0), child);
  BOOST_TEST(status == 0);
  BOOST_TEST(
      read_text(folder.file("stderr")) ==
      "[tenon] warning: TENON_LOG is \"\\x1b[31m" + std::string(95, 'e') +
          "… (100005 bytes)\"; it must be debug, info, warning or error, and warning is used\n"
          "[npu] warning: hot\n");
}

BOOST_AUTO_TEST_CASE(the_level_comes_from_the_environment) {
  PluginFolder folder;
  Environment level("TENON_LOG", "info");  // read at the first message of a process
  auto text = captured(folder.file("stderr"), [] {
    log_message(TN_LOG_DEBUG, "npu", "clock 3");
    log_message(TN_LOG_INFO, "npu", "clock 4");
    log_message(TN_LOG_ERROR, "npu", "no clock");
  });
  BOOST_TEST(text == "[npu] info: clock 4\n[npu] error: no clock\n");

  folder.add("good");
  folder.add("init_fails", {{"preference", 1}});
  text = captured(folder.file("stderr"), [&] { Registry(folder.only()).load("good"); });
  BOOST_TEST(has(text, "init_fails.tenon.json is refused: init failed: the fixture has no driver"));
  BOOST_TEST(has(text, "[tenon] info: loaded plugin good"));
}

BOOST_AUTO_TEST_SUITE_END()
