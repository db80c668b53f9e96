#include <cstdlib>
#include <memory>
#include <string_view>
#include <typeinfo>

#include <cxxabi.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/loader_state.h>

namespace tenon {
namespace {

// The type of the sampler, which decides the order of examples; empty without one.
std::string name_of_sampler(const data::LoaderOptions& options) {
  if (!options.sampler) return "";
  const data::Sampler& sampler = *options.sampler;
  const char* name = typeid(sampler).name();
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return readable ? readable.get() : name;
}

std::string sampler_text(const CheckpointValues& loader) {
  const std::string& name = loader.at("sampler").text();
  return name.empty() ? "none" : printable(name);
}

}  // namespace

CheckpointValues loader_values(const data::DataLoader& loader) {
  const data::LoaderState state = loader.state();
  const data::LoaderOptions& options = loader.options();
  CheckpointValues values = {{"epoch", state.epoch},
                             {"position", state.position},
                             {"seed", options.seed},
                             {"batch_size", options.batch_size},
                             {"batches", loader.size()},
                             {"examples", loader.dataset().size()},
                             {"sampler", name_of_sampler(options)}};
  if (!options.sampler) values["shuffle"] = CheckpointValue(options.shuffle);
  return values;
}

void require_same_order(const CheckpointValues& there, const CheckpointValues& here) {
  // Older files lack it.
  if (there.contains("sampler") && there.at("sampler").text() != here.at("sampler").text())
    throw StateDictError(fmt::format(
        "the sampler is {} in the file and {} here, so that its place in the epoch means "
        "nothing",
        sampler_text(there), sampler_text(here)));
  for (const char* key : {"batch_size", "examples", "batches", "shuffle"}) {
    // Files before there was "shuffle" lack it, and so do loaders with a sampler of their own.
    if (key == std::string_view("shuffle") && !(there.contains(key) && here.contains(key)))
      continue;
    if (there.at(key).whole() != here.at(key).whole())
      throw StateDictError(
          fmt::format("\"{}\" is {} in the file and {} here, so that its place in the epoch "
                      "means nothing",
                      key, there.at(key).whole(), here.at(key).whole()));
  }
}

}  // namespace tenon
