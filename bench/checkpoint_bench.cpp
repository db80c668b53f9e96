// A hundred megabytes to disk, checksummed and synced, and back; and a gigabyte beside what the
// system takes for the same bytes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "subject.h"

using namespace tenon;

namespace {

struct Weights : nn::Module<Weights> {
  std::vector<nn::Parameter> layers;
};

Weights weights(int layers = 20) {
  Weights net;
  for (int i = 0; i < layers; ++i) net.layers.push_back(rand({1280, 1024}));
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

template <class F>
double seconds(F&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The system's side: the bytes of all tensors, one after the other, and back.
void move_raw(const std::string& name, const Weights& net, bool writes) {
  const int file = ::open(name.c_str(), writes ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0600);
  bool moved = file >= 0;
  for (auto& layer : net.layers) {
    // What is read is what is there.
    auto* at = reinterpret_cast<char*>(const_cast<float*>(layer.data<float>()));
    for (size_t left = static_cast<size_t>(layer.numel()) * 4; moved && left > 0;) {
      const ssize_t n = writes ? ::write(file, at, left) : ::read(file, at, left);
      moved = n > 0;
      if (moved) at += n, left -= static_cast<size_t>(n);
    }
  }
  if (!moved || (writes && fsync(file) != 0) || ::close(file) != 0)
    throw std::runtime_error("the file " + name + " cannot be written or read");
}

// What a gigabyte takes, in turns that follow each other: raw writing and syncing over a save, both
// into a new file; raw reading from the system's cache over a load; and how long save_async stops
// the program over a copy of all values. The medians of the turns.
void gigabyte(benchmark::State& state) {
  Weights net = weights(200), into = weights(200), copy = weights(200);
  const std::string raw = path() + ".raw";
  std::vector<double> save_of_raw, load_of_raw, stall_of_copy, save_s, load_s;
  const auto copy_all = [&] {
    const NoGrad guard;
    for (size_t i = 0; i < net.layers.size(); ++i) copy.layers[i].copy_(net.layers[i]);
    synchronize();
  };
  for (auto _ : state) {
    std::remove(path().c_str());
    const double write = seconds([&] { move_raw(raw, net, true); });
    save_s.push_back(seconds([&] { save(path(), net); }));
    save_of_raw.push_back(write / save_s.back());
    const double read = seconds([&] { move_raw(raw, into, false); });
    load_s.push_back(seconds([&] { load(path(), into); }));
    load_of_raw.push_back(read / load_s.back());
    std::remove(raw.c_str());
    const double copying = seconds(copy_all);
    PendingSave pending;
    stall_of_copy.push_back(seconds([&] { pending = save_async(path(), {.model = net}); }) /
                            copying);
    pending.wait();
  }
  state.counters["save_of_raw"] = median(save_of_raw);
  state.counters["load_of_raw"] = median(load_of_raw);
  state.counters["stall_of_copy"] = median(stall_of_copy);
  state.counters["save_s"] = median(save_s);
  state.counters["load_s"] = median(load_s);
}

}  // namespace

int main(int argc, char** argv) {
  bench::subject("checkpoint/save_100MB", [] { return [net = weights()] { save(path(), net); }; });
  bench::subject("checkpoint/load_100MB", [] {
    Weights net = weights();
    save(path(), net);
    return [net]() mutable { load(path(), net); };
  });
  benchmark::RegisterBenchmark("checkpoint/gigabyte", gigabyte)->Iterations(9)->UseRealTime();
  return bench::run(argc, argv);
}
