// System calls that signals interrupt.
#pragma once

#include <cerrno>

namespace tenon {

// Makes a system call again for as long as signals interrupt it, and returns its result.
template <class Call>
auto uninterrupted(Call&& call) {
  for (;;)
    if (const auto result = call(); result >= 0 || errno != EINTR) return result;
}

}  // namespace tenon
