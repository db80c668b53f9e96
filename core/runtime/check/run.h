// What checked mode (TENON_CHECK) looks at before and after each run of a plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/core/dtype.h>
#include <tenon/core/runtime/check/contents.h>
#include <tenon/core/runtime/check/findings.h>
#include <tenon/core/runtime/check/memory.h>
#include <tenon/core/runtime/poison_map.h>

namespace tenon {
struct Launch;
}

namespace tenon::checked {

// One run on the thread that makes it. On a device with streams, it waits for the work before and
// after the run, so that nothing changes while it looks.
class RunCheck {
 public:
  RunCheck(const Launch& launch, const PathNode* path, tn_stream* stream);

  // Notes what the plan must not change, and fills what it has to write. Returns the error with
  // which it was not possible.
  tn_error* before();
  // `error` is that of the plan, or null. Returns it, or what is wrong with what the plan did.
  tn_error* after(tn_error* error);

 private:
  struct Operand {
    char* data;
    const Footprint* footprint;
    DType type;
    std::string name;  // "output 0"
    bool in_place = false;
    uint64_t hash = 0;  // of an input that must stay as it is
    bool hashed = false;
  };
  // Memory for the bytes of a device.
  using Room = std::vector<unsigned char>;

  bool skipped() const;
  void label_operands();
  template <class F>
  void each_spoilt(F&& visit);
  void fill_outputs(Pattern pattern);
  void fill(const Operand& output, Pattern pattern);
  unsigned char* fetch(const Operand& operand, Room& room);
  bool overlaps_an_output(const Operand& input) const;
  void look_at_guards();
  void look_at_inputs();
  tn_error* look_at_outputs();
  void look_for_nan();
  std::vector<bool> unwritten(const Operand& output, Pattern pattern);
  tn_error* run_again(std::vector<std::vector<bool>>& suspects);

  const Launch& launch_;
  const PathNode* const path_;
  tn_stream* const stream_;
  DeviceContext& context_;
  Memory* const memory_;
  std::vector<Operand> inputs_, outputs_;
  const Pattern unwritten_ = contents(Pattern::unwritten);
  bool inputs_had_nan_ = false;
  Findings found_;
};

}  // namespace tenon::checked
