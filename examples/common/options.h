// The command line that the examples share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include <tenon/core/device.h>

namespace example {

struct Options {
  std::string data = {};  // a folder or a file; empty: what the example takes without one
  std::vector<tenon::Device> devices = {"cpu"};
  int64_t epochs = 10;  // 0: evaluate only
  int64_t batch_size = 64;
  double lr = 0.1;
  uint64_t seed = 1;
  std::string save = {}, load = {};  // empty: neither
  std::string resume = {};           // a folder of checkpoints; empty: none are written
};

// An option that only one example has.
struct Extra {
  std::string name;                                   // "--length"
  std::variant<int64_t*, std::string*, bool*> value;  // a number is at least 1
  std::string help;
};

struct Program {
  std::string description;
  // What --data is. Examples of pictures can also generate some.
  std::string data =
      "Folder of IDX files (train-images-idx3-ubyte.gz and so on); without it pictures are "
      "generated";
  bool generates = true;
  std::vector<Extra> extras = {};
};

// The main function of an example: reads the command line over the defaults, sets the seed and
// calls `body`. Returns the exit status; what goes wrong is said in one line.
int run(int argc, char** argv, const Program& program, const Options& defaults,
        const std::function<void(const Options&)>& body);

}  // namespace example
