#include <algorithm>
#include <limits>

#include <tenon/core/runtime/check/arguments.h>

namespace tenon::checked {

namespace {
template <class T>
std::vector<T> copy_of(const T* values, size_t count) {
  return values ? std::vector<T>(values, values + count) : std::vector<T>();
}
}  // namespace

Arguments::Arguments(const tn_run& run)
    : inputs_(copy_of(run.inputs, run.num_inputs)),
      outputs_(copy_of(run.outputs, run.num_outputs)),
      scalars_(copy_of(run.scalars, run.num_scalars)),
      versions_(copy_of(run.input_versions, run.num_inputs)),
      run_(run) {
  run_.inputs = inputs_.data();
  run_.outputs = outputs_.data();
  if (run.scalars) run_.scalars = scalars_.data();
  if (run.input_versions) run_.input_versions = versions_.data();
}

void Arguments::spoil() {
  // No memory of a program has this address, so that a plugin which uses it is stopped there. It is
  // aligned as memory is.
  auto* const nowhere = reinterpret_cast<void*>(uintptr_t{0xf5f5f5f5f5f5f500});
  std::fill(inputs_.begin(), inputs_.end(), nowhere);
  std::fill(outputs_.begin(), outputs_.end(), nowhere);
  for (auto& scalar : scalars_) scalar.f = std::numeric_limits<double>::quiet_NaN();
  std::fill(versions_.begin(), versions_.end(), ~uint64_t{0});
  run_.workspace = nowhere;
}

}  // namespace tenon::checked
