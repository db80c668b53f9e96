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
void take_least(double& least, F&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  least = std::min(least, time.count());
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

// What a gigabyte takes, as parts of the least times of several turns, which all follow each other:
// raw writing and syncing over a save, raw reading from the system's cache over a load, and how
// long save_async stops the program over a copy of all values.
void gigabyte(benchmark::State& state) {
  Weights net = weights(200), into = weights(200), copy = weights(200);
  const std::string raw = path() + ".raw";
  double write = 1e9, save_time = 1e9, read = 1e9, load_time = 1e9, copying = 1e9, stall = 1e9;
  const auto copy_all = [&] {
    const NoGrad guard;
    for (size_t i = 0; i < net.layers.size(); ++i) copy.layers[i].copy_(net.layers[i]);
    synchronize();
  };
  for (auto _ : state) {
    take_least(write, [&] { move_raw(raw, net, true); });
    take_least(save_time, [&] { save(path(), net); });
    take_least(read, [&] { move_raw(raw, into, false); });
    take_least(load_time, [&] { load(path(), into); });
    std::remove(raw.c_str());
    take_least(copying, copy_all);
    PendingSave pending;
    take_least(stall, [&] { pending = save_async(path(), {.model = net}); });
    pending.wait();
  }
  state.counters["save_of_raw"] = write / save_time;
  state.counters["load_of_raw"] = read / load_time;
  state.counters["stall_of_copy"] = stall / copying;
  state.counters["save_s"] = save_time;
  state.counters["load_s"] = load_time;
}

}  // namespace

int main(int argc, char** argv) {
  bench::subject("checkpoint/save_100MB", [] { return [net = weights()] { save(path(), net); }; });
  bench::subject("checkpoint/load_100MB", [] {
    Weights net = weights();
    save(path(), net);
    return [net]() mutable { load(path(), net); };
  });
  benchmark::RegisterBenchmark("checkpoint/gigabyte", gigabyte)->Iterations(4)->UseRealTime();
  return bench::run(argc, argv);
}
