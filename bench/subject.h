// A subject is a name that bench/torch_bench.py knows too, and a body to time.
#pragma once

#include <string>

#include <benchmark/benchmark.h>

#include <tenon/tenon.h>

namespace bench {

// `prepare()` makes the inputs and returns the body; a body does `items` units of work and leaves
// nothing queued. Names are group/subject; compare.py compares wall time a unit.
template <class Prepare>
void subject(const std::string& name, int64_t items, Prepare prepare) {
  auto run = [prepare, items](benchmark::State& state) {
    tenon::manual_seed(1);
    auto body = prepare();
    for (int i = 0; i < 3; ++i) body();
    for (auto _ : state) body();
    state.SetItemsProcessed(state.iterations() * items);
  };
  benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime();
}
template <class Prepare>
void subject(const std::string& name, Prepare prepare) {
  subject(name, 1, prepare);
}

inline int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace bench
