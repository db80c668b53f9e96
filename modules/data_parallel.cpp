#include <algorithm>
#include <cmath>

#include <tenon/core/autograd/lanes.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/shape.h>
#include <tenon/modules/data_parallel.h>
#include <tenon/modules/lockstep.h>
#include <tenon/modules/norm.h>
#include <tenon/modules/repr.h>
#include <tenon/modules/shares.h>

namespace tenon::nn::detail {

namespace {

std::vector<Device> all_devices_like(ModuleRef module) {
  auto tensors = parameters(module);
  if (tensors.empty()) tensors = buffers(module);
  Device first = tensors.empty() ? default_device() : tensors[0].device();
  std::vector<Device> devices;
  for (uint32_t i = 0, n = device_count(first.type()); i < n; ++i)
    devices.emplace_back(first.type(), i);
  return devices;
}

// The fields of a module and of those below it that are buffers; tied ones are several.
struct BufferFields : FieldVisitor {
  struct Field {
    std::string name;
    Tensor* tensor;
  };
  std::vector<Field> fields;
  explicit BufferFields(ModuleRef module) {
    for (auto& [path, each] : named_modules(module)) {
      path_ = path;
      each.type->visit(each.self, *this);
    }
  }
  void buffer(std::string_view name, Tensor& tensor, bool) override {
    fields.push_back({fmt::format("{}.{}", path_, name), &tensor});
  }

 private:
  std::string path_;
};

std::vector<NamedTensor> buffer_values(ModuleRef module) {
  std::vector<NamedTensor> values;
  for (auto& [name, tensor] : BufferFields(module).fields) values.push_back({name, *tensor});
  return values;
}

// Makes each buffer the tensor of its name in `values` again; buffers of other names stay.
void assign_buffers(ModuleRef module, const std::vector<NamedTensor>& values) {
  auto next = values.begin();
  for (auto& [name, tensor] : BufferFields(module).fields) {
    // Both lists have the order of the fields.
    auto found = std::find_if(next, values.end(), [&](auto& v) { return v.name == name; });
    if (found == values.end()) continue;
    if (!tensor->is_same(found->tensor)) *tensor = found->tensor;
    next = found + 1;
  }
}

// Whether a batch normalization in training computes with all parts of the batch.
bool has_common_statistics(ModuleRef module) {
  for (auto& [name, each] : named_modules(module))
    if (BatchNormState* norm = batch_norm_of(each); norm && norm->sync && norm->training)
      return true;
  return false;
}

}  // namespace

std::vector<Device> choose_devices(ModuleRef module, std::vector<Device> devices,
                                   const std::vector<double>& weights) {
  if (devices.empty()) devices = all_devices_like(module);
  for (size_t i = 0; i < devices.size(); ++i)
    if (std::count(devices.begin(), devices.end(), devices[i]) > 1)
      throw DeviceError(fmt::format("DataParallel: device {} is given twice", devices[i]));
  check_weights("DataParallel", weights, devices.size());
  if (weights.empty()) return devices;
  require(weights[0] > 0, "DataParallel", "the weight of the first device, which has the model,",
          weights[0], "above 0");
  return devices;
}

void check_bucket_cap(double mebibytes) {
  require(mebibytes > 0, "DataParallel", "bucket_cap_mb", mebibytes, "above 0");
}

SplitCall::SplitCall(ModuleRef module, const std::vector<Device>& devices, double bucket_cap_mb,
                     bool syncs)
    : module_(module),
      before_(buffer_values(module)),
      in_turns_(has_common_statistics(module)),
      nested_(ReplicaScope::active()),
      scope_(std::make_unique<ReplicaScope>()) {
  // At every call, because layers can be replaced and moved at any time.
  std::vector<Tensor> all;
  auto prepare = [&](const std::vector<NamedTensor>& tensors) {
    for (auto& [name, t] : tensors) {
      if (t.device() != devices[0])
        throw DeviceError(fmt::format(
            "DataParallel: \"{}\" of the wrapped {} is on {}, but the model has to be on the first "
            "of its devices, {}; {}",
            name, module.type->name, t.device(), devices[0],
            nested_ ? "this wrapper is inside another one, which moved it to its own devices, so "
                      "give both the same first device, or wrap only the outer model"
                    : "move it there with to()"));
      allow_replicas(t);
      all.push_back(t);
    }
  };
  prepare(named_parameters(module));
  set_sums(all, bucket_cap_mb, syncs);
  prepare(named_buffers(module));
  refresh_replicas(all, devices);
  // Now, because the first part may change them.
  for (auto& tensor : all)
    for (auto& device : devices) resolve_replica(tensor, device);
}

// A call around this one has said whether gradients are summed. This one may only add that they are
// not.
void SplitCall::set_sums(const std::vector<Tensor>& parameters, double bucket_cap_mb,
                         bool syncs) const {
  const uint64_t bytes = static_cast<uint64_t>(std::min(bucket_cap_mb, 1e12) * (1 << 20));
  std::vector<std::pair<Tensor, GradientSums>> sums;
  for (auto& parameter : parameters)
    sums.emplace_back(parameter,
                      GradientSums{bytes, !syncs || (nested_ && defers_gradient_sums(parameter))});
  set_gradient_sums(sums);
}

void SplitCall::run(size_t parts, const std::function<void(size_t)>& work, PartTimes* times) {
  left_.resize(parts);
  times_ = times;
  lanes_ = std::make_unique<NodeLanes>(parts);
  if (in_turns_ && parts > 1) {
    Lockstep::run(parts, work, [this](size_t part) { switch_to(part); });
  } else {
    for (size_t part = 0; part < parts; ++part) {
      switch_to(part);
      work(part);
    }
  }
  if (times_) times_->stop();
  end();
}

void SplitCall::switch_to(size_t part) {
  if (times_) times_->turn_to(part);
  if (part_ && *part_ != part) {
    if (in_turns_ || *part_ == 0) {
      auto& left = left_[*part_].emplace(buffer_values(module_));
      for (auto& buffer : left) allow_replicas(buffer.tensor);  // also one that is new
    }
    assign_buffers(module_, left_[part].value_or(before_));
  }
  part_ = part;
  lanes_->enter(part);
}

void SplitCall::end() {
  if (part_ && *part_ != 0) assign_buffers(module_, left_[0].value_or(before_));
  part_.reset();
  lanes_.reset();
}

SplitCall::~SplitCall() {
  try {
    end();
  } catch (...) {
    // A part has failed, and now memory is short: the buffers stay as that part has them.
  }
}

void find_batch(const Tensor& argument, Split& split) {
  if (!argument.defined() || argument.dim() == 0) return;
  int64_t size = argument.size(0);
  if (split.batch < 0) split.batch = size;
  if (size != split.batch)
    throw ShapeError(
        fmt::format("DataParallel: the arguments have different batch sizes: {} and {} (shape {}); "
                    "dimension 0 of every tensor is split among the devices",
                    split.batch, size, argument.shape()));
}

void share_out(Split& split, const std::vector<Device>& devices,
               const std::vector<double>& weights) {
  const auto ends = share_ends(std::max<int64_t>(split.batch, 0), devices.size(), weights);
  int64_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] > begin) split.parts.push_back({devices[i], begin, ends[i] - begin});
    begin = ends[i];
  }
  if (split.parts.empty())
    split.parts.push_back({devices[0], 0, 0});  // an empty batch, or none at all: one call
  // The first part runs on the device that has the buffers, whose changes last. A share that was
  // rounded to no row is exchanged for that of the next device.
  split.parts[0].device = devices[0];
}

Tensor scatter_tensor(const Tensor& x, const Split& split, const Split::Part& part) {
  if (!x.defined()) return x;
  if (x.dim() == 0 || part.size == split.batch) return x.to(part.device);
  return x.narrow(0, part.begin, part.size).to(part.device);
}

Tensor gather_tensors(const std::vector<Tensor>& outputs, Device device) {
  if (!outputs[0].defined()) return outputs[0];
  if (outputs.size() == 1 && outputs[0].dim() > 0) return outputs[0].to(device);
  std::vector<Tensor> pieces;
  for (auto& output : outputs) {
    Tensor piece = output.to(device);
    pieces.push_back(piece.dim() == 0 ? piece.reshape({1}) : piece);
  }
  return cat(pieces, 0);
}

}  // namespace tenon::nn::detail

namespace tenon::nn {

// A compiled function has to notice what its calls do about sums.
NoSync::NoSync(Count& count) : count_(&count) {
  ++count.value;
  recording::changed();
}
NoSync::~NoSync() {
  if (!count_) return;
  --count_->value;
  recording::changed();
}

}  // namespace tenon::nn
