// What optimizers and schedulers save, and how it is read again.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim::detail {

std::string state_key(size_t index, const char* what);  // "state.0.step"
std::string group_key(size_t group, const char* what);  // "param_groups.0.lr"

// Returns the dtype of a parameter's state: f32 where it is of a half type, otherwise its own.
DType state_dtype(const Tensor& p);
// Returns new state for a parameter.
Tensor fresh_slot(const Tensor& p, double value);

// The numbers of a state, each of which is taken once.
class StateNumbers {
 public:
  // `source`: what the numbers have to come from, for errors.
  StateNumbers(const char* owner, const std::vector<std::pair<std::string, double>>& numbers,
               const char* source = "an optimizer of this kind with these parameter groups")
      : owner_(owner), source_(source), numbers_(numbers.begin(), numbers.end()) {}

  // Throws the StateDictError "Error in loading state_dict for <owner>: <why>".
  [[noreturn]] void fail(const std::string& why) const;
  // Returns a finite number. Without `absent` it has to be there.
  double take(const std::string& key, std::optional<double> absent = std::nullopt);
  // Returns a whole number from 0 to 2^53; `what` it is, such as "a number of steps", for the
  // error.
  int64_t take_count(const std::string& key, const char* what,
                     std::optional<double> absent = std::nullopt);
  void require_all_taken() const;
  // Returns those that were not taken.
  std::vector<std::pair<std::string, double>> left() const {
    return {numbers_.begin(), numbers_.end()};
  }

 private:
  const char *owner_, *source_;
  std::map<std::string, double> numbers_;
};

}  // namespace tenon::optim::detail
