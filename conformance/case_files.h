// Reference cases: PyTorch's values and gradients, in the files that
// tests/reference/cases/FORMAT.md describes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tenon/core/tensor.h>

namespace tenon::conformance {

struct ReferenceCase {
  std::string name;  // "binary.h5/0000_add"
  std::string op;
  nlohmann::json args;
  double rtol = 0, atol = 0;
  // As f64, i64 or bool; undefined where the file has none. optim.h5: in = {param,
  // grads}, out = {steps}. schedule.h5: in = {metric} or nothing, out = {lr}, and args are {"op",
  // "args", "steps"}.
  std::vector<Tensor> in, out, gout, gin;
  bool f64_only = false;
  // In cases of promotion: PyTorch's names of the dtypes of `in` and `out`.
  std::vector<std::string> in_types, out_types;
};
// Whether the case is one of promotion, which promotion_check (driver.h) runs.
inline bool is_promotion(const ReferenceCase& c) { return c.args.contains("form"); }

struct CaseFolder {
  std::map<std::string, std::vector<std::shared_ptr<const ReferenceCase>>> by_op;
  size_t count = 0;
  // What could not be read: the file or "file/group", and why. Files of a newer HDF5 than this one
  // may be as they should.
  struct Unreadable {
    std::string name, reason;
    bool too_new;
  };
  std::vector<Unreadable> unreadable;
};

struct CaseReading {
  // Cases of the table's other operators are left out unread.
  std::function<bool(const std::string& op)> wanted = [](auto&) { return true; };
  std::set<std::string> without = {};  // files that are not opened: "binary.h5"
  // Called before HDF5 reads anything, with the name of the file or of the case in it, and with
  // none at the end. A damaged file may crash or stop HDF5.
  std::function<void(const std::string& part)> begins = [](auto&) {};
};

// Reads every *.h5 of a folder into tensors of `device`. Throws a DataError if it is no folder or
// has no such file. Files may come from anybody: what is not as the format says is named in
// `unreadable`. Of operators that are not in the table no tensor is read.
CaseFolder read_case_folder(const std::string& folder, Device device,
                            const CaseReading& reading = {});

}  // namespace tenon::conformance
