// Work is queued, so a program is ahead of its devices; devices work at the same time, and copies
// while others compute. overlap.h measures it.
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>

#include "async/overlap.h"

int main(int argc, char** argv) {
  std::string devices = "cpu:0,cpu:1";
  example::OverlapOptions o;
  CLI::App app("Shows what overlaps: the program and its devices, devices, copies");
  app.add_option("--device", devices, "The devices; copies go from the first to the last")
      ->capture_default_str();
  app.add_option("--size", o.size, "Rows and columns of the matrices")->capture_default_str();
  app.add_option("--times", o.times, "How many products a chain has")->capture_default_str();
  app.add_option("--turns", o.turns, "How often each time is taken; the best counts")
      ->capture_default_str();
  for (auto* number : {"--size", "--times", "--turns"})
    app.get_option(number)->check(CLI::Range(1, 1 << 14));
  app.add_option("--trace", o.trace, "Write a trace for https://ui.perfetto.dev into this file");
  CLI11_PARSE(app, argc, argv);
  try {
    example::show_overlap(tenon::parse_devices(devices), o);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "async: %s\n", e.what());
    return 1;
  }
}
