// Checkpoints whose tensors have the number of the save as their values.
#pragma once

#include <filesystem>
#include <string>

#include <tenon/core/ops/creation.h>
#include <tenon/core/tensor.h>
#include <tenon/serialization/checkpoint.h>

#include "support/expect.h"

namespace tenon::test {

// Tensors of 4000, 2000, 40 and 6000 bytes: with at most 6500 in a file there are two files.
inline nn::StateDict numbered_tensors(int number) {
  return {{"a", full({1000}, number)},
          {"b.weight", full({20, 25}, number)},
          {"c", full({10}, number)},
          {"d", full({1500}, number)}};
}
inline constexpr SaveOptions kSharded{.max_shard_size = 6500};

// What a load says that is refused, "" if it is not.
inline std::string refusal(const std::filesystem::path& path) {
  return error_of<CheckpointError>([&] { load(path); });
}

}  // namespace tenon::test
