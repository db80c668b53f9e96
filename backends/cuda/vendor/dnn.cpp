#include "vendor/dnn.h"

#include <algorithm>
#include <utility>

#include <tenon/plugins/sdk/sdk.h>

namespace tenon::cuda {

namespace {

// These two are still how libraries before 9.8 learn of the device.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
constexpr auto kGraphHandle = CUDNN_ATTR_OPERATIONGRAPH_HANDLE;
constexpr auto kPlanHandle = CUDNN_ATTR_EXECUTION_PLAN_HANDLE;
#pragma GCC diagnostic pop

constexpr uint32_t kAlwaysRefused = 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;

}  // namespace

DnnDescriptor::State::~State() {
  if (raw) cudnn().cudnnBackendDestroyDescriptor(raw);
}

DnnDescriptor::DnnDescriptor(cudnnBackendDescriptorType_t type)
    : state_(std::make_shared<State>()) {
  check(cudnn().cudnnBackendCreateDescriptor(type, &state_->raw), "cudnnBackendCreateDescriptor");
}

DnnDescriptor& DnnDescriptor::set(cudnnBackendAttributeName_t name,
                                  cudnnBackendAttributeType_t type, const void* values,
                                  size_t count) {
  const auto status = cudnn().cudnnBackendSetAttribute(state_->raw, name, type,
                                                       static_cast<int64_t>(count), values);
  if (status != CUDNN_STATUS_SUCCESS)
    throw_status(status, sdk::text("cudnnBackendSetAttribute {}", static_cast<int>(name)));
  return *this;
}

DnnDescriptor& DnnDescriptor::set(cudnnBackendAttributeName_t name,
                                  const std::vector<DnnDescriptor>& others) {
  std::vector<cudnnBackendDescriptor_t> raws;
  for (auto& other : others) {
    raws.push_back(other.raw());
    state_->uses.push_back(other);
  }
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raws.data(), raws.size());
}

DnnDescriptor& DnnDescriptor::finalize() {
  check(cudnn().cudnnBackendFinalize(state_->raw), "cudnnBackendFinalize");
  return *this;
}

size_t DnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          void* values, size_t room) const {
  int64_t count = 0;
  const auto status = cudnn().cudnnBackendGetAttribute(state_->raw, name, type,
                                                       static_cast<int64_t>(room), &count, values);
  if (status != CUDNN_STATUS_SUCCESS)
    throw_status(status, sdk::text("cudnnBackendGetAttribute {}", static_cast<int>(name)));
  return room ? std::min(static_cast<size_t>(count), room) : static_cast<size_t>(count);
}

cudnnDataType_t dnn_data_type(tn_dtype dtype) {
  switch (dtype) {
    case TN_F64:
      return CUDNN_DATA_DOUBLE;
    case TN_F16:
      return CUDNN_DATA_HALF;
    case TN_BF16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

DnnDescriptor DnnTensor::descriptor() const {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  DnnDescriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape);
  d.set(CUDNN_ATTR_TENSOR_STRIDES, strides).set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  if (is_virtual) d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  return d.finalize();
}

DnnTarget DnnTarget::described(const std::string& json) {
  DnnTarget target;
  target.device = DnnDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  target.device
      .set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, json.c_str(),
           json.size() + 1)
      .finalize();
  return target;
}

DnnDescriptor dnn_graph(const DnnTarget& target, const std::vector<DnnDescriptor>& operations) {
  DnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle) graph.set(kGraphHandle, target.handle);
  return graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations).finalize();
}

DnnPlan::DnnPlan(const DnnTarget& target, const DnnDescriptor& graph, const DnnRules& rules,
                 std::vector<int64_t> ids)
    : ids_(std::move(ids)) {
  for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    if (try_engines(target, graph, rules, mode)) return;
  std::string why = sdk::text(
      "cuDNN has no engine: {} were proposed, {} of them not deterministic, "
      "not precise enough or with too large a workspace",
      found_, refused_);
  if (!last_failure_.empty()) why += "; the last failure: " + last_failure_;
  sdk::unsupported(why);
}

bool DnnPlan::try_engines(const DnnTarget& target, const DnnDescriptor& graph,
                          const DnnRules& rules, cudnnBackendHeurMode_t mode) {
  std::vector<DnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> raws;
  try {
    DnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
    if (target.device) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target.device);
    heuristics.finalize();
    size_t room =
        heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, nullptr, 0);
    for (size_t i = 0; i < room; ++i)
      raws.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).raw());
    // Fewer may come than there seemed to be.
    configs.resize(heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                  raws.data(), room));
  } catch (const sdk::Error& e) {
    if (e.code() == TN_CODE_OUT_OF_MEMORY) throw;
    last_failure_ = e.what();
    return false;
  }
  for (auto& config : configs)
    if (try_engine(target, config, rules)) return true;
  return false;
}

bool DnnPlan::try_engine(const DnnTarget& target, const DnnDescriptor& config,
                         const DnnRules& rules) {
  ++found_;
  try {
    DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    auto raw = engine.raw();
    config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, &raw, 1);
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    const size_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                    notes, std::size(notes));
    uint32_t bits = 0;
    for (size_t i = 0; i < count; ++i) bits |= 1u << notes[i];
    if (bits & (rules.refused_notes | kAlwaysRefused)) return ++refused_, false;

    DnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (target.handle) plan.set(kPlanHandle, target.handle);
    if (target.device) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target.device);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config).finalize();
    int64_t workspace = 0;
    plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, &workspace, 1);
    if (workspace > rules.workspace_bytes) return ++refused_, false;
    plan_ = plan;
    notes_ = bits;
    engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, &engine_, 1);
    workspace_bytes_ = static_cast<uint64_t>(workspace);
    return true;
  } catch (const sdk::Error& e) {
    if (e.code() == TN_CODE_OUT_OF_MEMORY) throw;
    last_failure_ = e.what();
    return false;
  }
}

void DnnPlan::execute(cudnnHandle_t handle, std::span<void* const> pointers,
                      void* workspace) const {
  // A pack cannot be changed once it is finalized, so there is one for each run.
  DnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids_);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(),
           pointers.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &workspace, 1);
  pack.finalize();
  check(cudnn().cudnnBackendExecute(handle, plan_.raw(), pack.raw()), "cudnnBackendExecute");
}

}  // namespace tenon::cuda
