// cuDNN's graph API in C++: descriptors that end themselves, tensors, and from a graph of
// operations to a plan that runs. Everything but `DnnPlan::execute` needs the library alone and no
// device, if the target is described instead of opened.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <tenon/plugins/abi/abi.h>

#include "vendor/library.h"

namespace tenon::cuda {

// Keeps what it refers to alive.
class DnnDescriptor {
 public:
  DnnDescriptor() = default;
  explicit DnnDescriptor(cudnnBackendDescriptorType_t type);

  DnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     const void* values, size_t count);
  template <class T>
  DnnDescriptor& set(cudnnBackendAttributeName_t name, const T& value);
  DnnDescriptor& set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, values.data(), values.size());
  }
  DnnDescriptor& set(cudnnBackendAttributeName_t name, const DnnDescriptor& other) {
    return set(name, std::vector{other});
  }
  DnnDescriptor& set(cudnnBackendAttributeName_t name, const std::vector<DnnDescriptor>& others);
  DnnDescriptor& finalize();

  // How many values were written to `values`, which has room for `room` of them; where that is 0,
  // how many there are.
  size_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, void* values,
             size_t room) const;
  cudnnBackendDescriptor_t raw() const { return state_ ? state_->raw : nullptr; }
  explicit operator bool() const { return state_ != nullptr; }

 private:
  struct State {
    cudnnBackendDescriptor_t raw = nullptr;
    std::vector<DnnDescriptor> uses;
    ~State();
  };
  std::shared_ptr<State> state_;
};

template <class T>
constexpr cudnnBackendAttributeType_t dnn_type_of() {
  if constexpr (std::is_same_v<T, bool>) return CUDNN_TYPE_BOOLEAN;
  if constexpr (std::is_same_v<T, int64_t>) return CUDNN_TYPE_INT64;
  if constexpr (std::is_same_v<T, float>) return CUDNN_TYPE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return CUDNN_TYPE_DOUBLE;
  if constexpr (std::is_same_v<T, cudnnHandle_t>) return CUDNN_TYPE_HANDLE;
  if constexpr (std::is_same_v<T, cudnnDataType_t>) return CUDNN_TYPE_DATA_TYPE;
  if constexpr (std::is_same_v<T, cudnnConvolutionMode_t>) return CUDNN_TYPE_CONVOLUTION_MODE;
  if constexpr (std::is_same_v<T, cudnnPointwiseMode_t>) return CUDNN_TYPE_POINTWISE_MODE;
  if constexpr (std::is_same_v<T, cudnnBackendHeurMode_t>) return CUDNN_TYPE_HEUR_MODE;
}

template <class T>
DnnDescriptor& DnnDescriptor::set(cudnnBackendAttributeName_t name, const T& value) {
  return set(name, dnn_type_of<T>(), &value, 1);
}

cudnnDataType_t dnn_data_type(tn_dtype dtype);  // of the floating types
// What sums are kept in: f64 for f64, else f32.
inline cudnnDataType_t dnn_compute_type(tn_dtype dtype) {
  return dtype == TN_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

// A tensor of a graph, row-major without gaps.
struct DnnTensor {
  int64_t id;  // by which its pointer is handed over
  cudnnDataType_t type;
  std::vector<int64_t> shape;
  int64_t alignment = 16;   // bytes, of the first element
  bool is_virtual = false;  // between two operations: never in memory
  DnnDescriptor descriptor() const;
};

// For what plans are made: an open device, or, without one, the description of one (cuDNN 9.8 and
// later).
struct DnnTarget {
  cudnnHandle_t handle = nullptr;
  DnnDescriptor device;
  static DnnTarget described(const std::string& json);
};

DnnDescriptor dnn_graph(const DnnTarget& target, const std::vector<DnnDescriptor>& operations);

// What is required of an engine. One whose sums have another order each time is always refused.
struct DnnRules {
  uint32_t refused_notes;  // bit i: cudnnBackendNumericalNote_t i
  int64_t workspace_bytes;
};

class DnnPlan {
 public:
  // The first engine of the heuristics' list that keeps to the rules and takes the graph. Throws
  // TN_CODE_UNSUPPORTED where none does.
  DnnPlan(const DnnTarget& target, const DnnDescriptor& graph, const DnnRules& rules,
          std::vector<int64_t> ids);

  uint64_t workspace_bytes() const { return workspace_bytes_; }
  uint32_t notes() const { return notes_; }
  int64_t engine() const { return engine_; }
  // Queues it on the handle's stream; pointers in the order of `ids`.
  void execute(cudnnHandle_t handle, std::span<void* const> pointers, void* workspace) const;

 private:
  bool try_engines(const DnnTarget& target, const DnnDescriptor& graph, const DnnRules& rules,
                   cudnnBackendHeurMode_t mode);
  bool try_engine(const DnnTarget& target, const DnnDescriptor& config, const DnnRules& rules);

  DnnDescriptor plan_;
  std::vector<int64_t> ids_;
  uint64_t workspace_bytes_ = 0;
  uint32_t notes_ = 0;  // of the engine that was taken
  int64_t engine_ = -1;
  int found_ = 0, refused_ = 0;
  std::string last_failure_;
};

}  // namespace tenon::cuda
