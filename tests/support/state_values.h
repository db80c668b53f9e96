// What a model holds, to compare it with another.
#pragma once

#include <vector>

#include <tenon/modules/module.h>

namespace tenon::test {

// All parameters and buffers that are saved, in order.
inline std::vector<std::vector<double>> state_values(nn::ModuleRef model) {
  std::vector<std::vector<double>> all;
  for (const nn::StateEntry& entry : nn::state_entries(model))
    all.push_back(entry.tensor.to_vector<double>());
  return all;
}

}  // namespace tenon::test
