// What the command line says beside what CLI11 does.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tenon::tools {

// A line for each environment variable that all programs of Tenon read.
std::string environment_help();

// Where a command was asked for that there is not: which, and what may have been meant. CLI11 says
// only that one is missing. Empty where that is so.
std::string unknown_command(const CLI::App& app);

// A check for CLI11, which takes a number that is too large as the largest one: what is wrong with
// `text`, or nothing.
std::string check_whole_number(const std::string& text);

// The same for how far two values may be apart. With "nan" no two values would differ, as no
// comparison with it is true.
std::string check_tolerance(const std::string& text);

}  // namespace tenon::tools
