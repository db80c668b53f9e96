// What memory holds, in checked mode, that nobody has written yet.
#pragma once

#include <tenon/core/api.h>
#include <tenon/core/runtime/check/patterns.h>

namespace tenon::checked {

// As long as one exists, memory that is handed out, and the outputs of runs, hold `pattern`, which
// is Pattern::large or ::large_negative, on all devices. There is one at a time. Whoever computes
// the same with and without it sees what depends on what memory held. Work that is queued keeps
// what it has, so wait for it before this begins and before it ends. Without checked mode it has no
// effect.
class TENON_API OtherContents {
 public:
  explicit OtherContents(Pattern pattern);
  ~OtherContents();
  OtherContents(const OtherContents&) = delete;
};

// Returns the pattern that stands for `usual` at present: `fresh` or `unwritten`.
Pattern contents(Pattern usual);

}  // namespace tenon::checked
