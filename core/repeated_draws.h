// Random numbers that are drawn a second time, as a checkpoint does in the backward pass.
#pragma once

#include <tenon/core/random.h>

namespace tenon {

// As long as it exists, random operators draw what was drawn from this state on. Then the generator
// stands where it stood before. A function may do that while it is recorded, if it has drawn these
// numbers itself.
class RepeatedDraws {
 public:
  explicit RepeatedDraws(RandomState from);
  ~RepeatedDraws();
  RepeatedDraws(const RepeatedDraws&) = delete;
  RepeatedDraws& operator=(const RepeatedDraws&) = delete;

 private:
  const RandomState before_;
};

}  // namespace tenon
