// What the command says when something fails.
#pragma once

#include <exception>
#include <string>

namespace tenon::tools {

// The text of an error in the words of the command line: the library's errors name options of its
// functions, `.verify = false`, which are "--no-verify" there.
std::string text_of(const std::exception& error);

// Prints it to the standard error, after what was printed to the standard output.
void print_error(const std::exception& error);

}  // namespace tenon::tools
