// The contents that checked mode gives to memory before it is written.
#pragma once

#include <tenon/core/api.h>
#include <tenon/core/runtime/check/patterns.h>

namespace tenon::checked {

// As long as this object exists, memory that is handed out and the outputs of runs contain
// `pattern` at first, Pattern::large or ::large_negative, on all devices. Only one may exist at a
// time. If a computation gives other results with it than without it, it depends on what memory
// contained. Work that is already queued is not affected, so wait for it before this begins and
// before it ends. Without checked mode the object has no effect.
class TENON_API OtherContents {
 public:
  explicit OtherContents(Pattern pattern);
  ~OtherContents();
  OtherContents(const OtherContents&) = delete;
};

// Returns the pattern that stands for `usual` at present: `fresh` or `unwritten`.
Pattern contents(Pattern usual);

}  // namespace tenon::checked
