// How operators and functions take part in mixed precision (core/autocast.h).
//
// An operator says it itself (OpSpec), and `run` converts its inputs. What functions do that are
// made of operators is in a table by their names (autocast_rules.cpp). Such a function, or one of
// an operator that checks the dtypes of its arguments, asks for itself and calls itself once more
// with converted ones:
//
//   if (const Autocasting cast{"mse_loss", {&x, &y}})
//     return mse_loss(cast(x), cast(y), reduction);
//
// Inside, nothing is converted any more.
#pragma once

#include <initializer_list>
#include <list>
#include <optional>
#include <string_view>
#include <vector>

#include <tenon/core/autocast.h>
#include <tenon/core/base/per_thread.h>
#include <tenon/core/dispatch/op.h>

namespace tenon {

// The innermost guard of the thread; null where nothing is converted.
extern constinit thread_local const Autocast* innermost_autocast TENON_FAST_TLS;

// Returns the rule of a function or an operator; `none` for those that have none.
AutocastRule autocast_rule(std::string_view name);
struct NamedAutocastRule {
  const char* name;
  AutocastRule rule;
};
// All rules of functions and operators, sorted by name.
TENON_API std::span<const NamedAutocastRule> autocast_rules();

// Until the end of the scope nothing is converted: for what computes in the dtypes that were chosen
// before, such as a decomposition or a backward pass.
class AutocastOff {
 public:
  AutocastOff() : before_(innermost_autocast) { innermost_autocast = nullptr; }
  ~AutocastOff() { innermost_autocast = before_; }
  AutocastOff(const AutocastOff&) = delete;
  AutocastOff& operator=(const AutocastOff&) = delete;

 private:
  const Autocast* const before_;
};

// What a call converts its inputs to; nothing where it takes them as they are.
struct AutocastSetting {
  DType dtype;
  bool caches;
  // The guard that counts for devices of this type.
  static std::optional<AutocastSetting> on(uint32_t device_type);
};

// The inputs of a call of an operator, converted where its rule says so.
class AutocastInputs {
 public:
  explicit AutocastInputs(const Call& call);
  // Whether one was converted.
  explicit operator bool() const { return !owned_.empty(); }
  Inputs inputs() const { return inputs_; }

 private:
  std::vector<Tensor> owned_;
  std::vector<const Tensor*> inputs_;
};

// One call of a public function; see above. `tensors` are its arguments, of which null and
// undefined ones do not count.
class Autocasting {
 public:
  Autocasting(const char* function, std::initializer_list<const Tensor*> tensors) {
    if (innermost_autocast) [[unlikely]]
      begin(function, {tensors.begin(), tensors.size()});
  }
  Autocasting(const char* function, const std::vector<Tensor>& tensors) {
    if (innermost_autocast) [[unlikely]]
      begin(function, tensors);
  }
  ~Autocasting() {
    if (guard_) [[unlikely]]
      innermost_autocast = guard_;
  }
  Autocasting(const Autocasting&) = delete;
  Autocasting& operator=(const Autocasting&) = delete;
  // Whether the function has a rule and has to call itself.
  explicit operator bool() const { return guard_; }
  Tensor operator()(const Tensor& x) const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& list) const;

 private:
  void begin(const char* function, std::span<const Tensor* const> tensors);
  void begin(const char* function, const std::vector<Tensor>& tensors);
  const Autocast* guard_ = nullptr;  // the one that is off meanwhile
  std::optional<DType> to_;
  bool caches_ = false;
  Device device_;
};

// The guards of a thread, to be set up again elsewhere: for what a backward pass calls that was
// first called under them.
class AutocastState {
 public:
  // That of this thread.
  AutocastState();
  bool operator==(const AutocastState& other) const { return guards_ == other.guards_; }

  // Until its end, the thread has the guards of the state and no others.
  class Guard {
   public:
    explicit Guard(const AutocastState& state);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    const AutocastOff off_;
    std::list<Autocast> guards_;
  };

 private:
  std::vector<Autocast::Setting> guards_;  // the outermost first
};

}  // namespace tenon
