// Readers of files, and inputs for them that nobody would write: those of a target are made of its
// seeds, of which each has a number, so that one that is found is made again. The long form
// (tests/fuzz.h) goes on until its time is over.
//
//   TENON_FUZZ_SEED    another number than 1: other inputs
//   TENON_FUZZ_INPUT   the number of the only input to try
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "support/expect.h"

namespace tenon::test::fuzz {

struct Target {
  const char* name;
  // Reads the bytes, and returns whether they were refused with an error of the kind that the
  // reader promises. Anything else that is thrown is a fault.
  std::function<bool(std::string_view bytes)> one_input;
  std::vector<std::string> seeds;
  bool seeds_are_whole = true;          // each of them is read
  std::vector<std::string> words = {};  // that mean something in this format
  // Makes right what a change has made wrong, such as checksums, so that more is read.
  std::function<std::string(std::string)> finish = {};
  size_t runs = 1000;  // in the short form; a quarter under a sanitizer
};

// Tries the seeds, and inputs that are made of them. Without a sanitizer, no input may take more
// memory than its size allows.
void try_inputs(const Target& target);

// Whether body() throws an E. An E that says that memory is short is a fault, because these inputs
// are small.
template <class E>
bool is_refused(auto&& body) {
  try {
    body();
    return false;
  } catch (const E& error) {
    if (std::string_view(error.what()).find("has no memory left") != std::string_view::npos)
      throw std::runtime_error(std::string("it asks for too much memory: ") + error.what());
    return true;
  }
}

// A load and a look into a file of these bytes, as every reader of tensors does them.
bool load_is_refused(std::string_view bytes);

// Files of tests/reference/weights whose names end so, and those of tests/fuzz/seeds.
std::vector<std::string> reference_files(std::initializer_list<const char*> names);
std::vector<std::string> seed_files(std::string_view ending);

std::string number(uint64_t value, size_t bytes);  // little-endian
// A zip archive of stored members.
std::string archive_of(const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace tenon::test::fuzz
