// The `tenon` command and the examples, run as a user runs them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "places.h"
#include "support/expect.h"

// `text` has `part` in it; otherwise the test ends and shows both.
#define REQUIRE_HAS(text, part)                                                             \
  BOOST_REQUIRE_MESSAGE(tenon::test::has(text, part), "\"" << (part) << "\" expected in:\n" \
                                                           << (text))

namespace tenon::test::programs {

namespace fs = std::filesystem;

struct Outcome {
  int status;
  std::string out, err;
};

// A folder that goes with the test.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("tenon-cli-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Runs bin/`command` with stdin closed; `before` may set variables, and `out` is another place for
// what it prints.
inline Outcome run(const Folder& folder, const std::string& command, const std::string& before = "",
                   std::string out = "") {
  std::string err = folder / "stderr";
  if (out.empty()) out = folder / "stdout";
  int status = std::system((before + " '" + tenon::test::build_dir() + "/bin/'" + command + " >'" +
                            out + "' 2>'" + err + "' </dev/null")
                               .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status),
          fs::is_regular_file(out) ? slurp(out) : "", slurp(err)};
}

// A command of `tenon checkpoint`, whose words are quoted for the shell.
inline std::string checkpoint_command(const std::vector<std::string>& words) {
  std::string text = "tenon checkpoint";
  for (const std::string& word : words) text += " '" + word + "'";
  return text;
}

inline std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace tenon::test::programs
