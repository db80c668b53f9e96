// `tenon conformance`, run as an author of a backend runs it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

#include <boost/test/unit_test.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "places.h"
#include "support/expect.h"

namespace tenon::test::conformance_run {

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("tenon-conformance-" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

struct Outcome {
  int status;
  std::string out;  // standard output and standard error
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// `fault`: what a plugin of tests/conformance does wrong. `options`: those of env.
inline Outcome run(const Folder& folder, const std::string& arguments,
                   const std::string& fault = "", const std::string& options = "") {
  const std::string out = folder / "out", command = "env " + options + " TENON_TEST_FAULT='" +
                                                    fault + "' '" + build_dir() +
                                                    "/bin/tenon' conformance " + arguments + " >'" +
                                                    out + "' 2>&1 </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), slurp(out)};
}

inline std::string plugin(const char* path) {
  return "--plugin '" + build_dir() + "/tests/" + path + "' ";
}
inline std::string faulty() { return plugin("conformance/libtenon_faulty.so"); }
inline std::string poor() { return plugin("conformance/libtenon_poor.so"); }

inline void require_line(const Outcome& outcome, int status,
                         std::initializer_list<const char*> parts) {
  BOOST_TEST(outcome.status == status);
  for (auto* part : parts)
    BOOST_REQUIRE_MESSAGE(has(outcome.out, part), "\"" << part << "\" expected in:\n"
                                                       << outcome.out.substr(0, 4000));
}

}  // namespace tenon::test::conformance_run
