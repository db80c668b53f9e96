// The command line that the examples share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/core/device.h>

namespace example {

struct Options {
  std::string data = {};  // a folder of IDX files; empty: the generated set
  std::vector<tenon::Device> devices = {"cpu"};
  int64_t epochs = 10;  // 0: evaluate only
  int64_t batch_size = 64;
  double lr = 0.1;
  uint64_t seed = 1;
  std::string save = {}, load = {};  // empty: neither
};

// Reads the command line over `defaults`; an exit status instead where the program is done (--help,
// or a mistake that was reported).
struct Parsed {
  Options options;
  std::optional<int> exit_status;
};
Parsed parse(int argc, char** argv, const std::string& description, const Options& defaults);

}  // namespace example
