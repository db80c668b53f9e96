// A hundred megabytes to disk, checksummed and synced, and back.
#include <filesystem>

#include <unistd.h>

#include "subject.h"

using namespace tenon;

namespace {

struct Weights : nn::Module<Weights> {
  std::vector<nn::Parameter> layers;
};

Weights weights() {
  Weights net;
  for (int i = 0; i < 20; ++i) net.layers.push_back(rand({1280, 1024}));
  return net;
}

// A file of this process, gone at exit.
std::string path() {
  static struct File {
    std::string name = (std::filesystem::temp_directory_path() /
                        ("tenon-bench-" + std::to_string(getpid()) + ".h5"))
                           .string();
    ~File() { std::remove(name.c_str()); }
  } file;
  return file.name;
}

}  // namespace

int main(int argc, char** argv) {
  bench::subject("checkpoint/save_100MB", [] { return [net = weights()] { save(path(), net); }; });
  bench::subject("checkpoint/load_100MB", [] {
    Weights net = weights();
    save(path(), net);
    return [net]() mutable { load(path(), net); };
  });
  return bench::run(argc, argv);
}
