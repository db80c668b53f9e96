// The names of files in the folder of a CheckpointManager.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/core.h>

namespace tenon {

inline constexpr std::string_view kStepPrefix = "step-", kStepEnding = ".h5";
inline constexpr const char *kLatest = "latest.h5", *kBest = "best.h5";

inline std::string name_of_step(int64_t step) {
  return fmt::format("{}{:012}{}", kStepPrefix, step, kStepEnding);
}

// Returns the step of a file of that name; nullopt for a name that the manager does not give: such
// files belong to somebody else.
inline std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix) || !name.ends_with(kStepEnding)) return std::nullopt;
  const char *begin = name.data() + kStepPrefix.size(),
             *end = name.data() + name.size() - kStepEnding.size();
  int64_t step = 0;
  const auto [stop, error] = std::from_chars(begin, end, step);
  if (error != std::errc() || stop != end || step < 0 || name != name_of_step(step))
    return std::nullopt;
  return step;
}

}  // namespace tenon
