// The object to which a Tensor handle points.
#pragma once

#include <atomic>
#include <memory>

#include <tenon/core/base/pool.h>
#include <tenon/core/base/ref.h>
#include <tenon/core/memory_format.h>
#include <tenon/core/storage.h>
#include <tenon/core/tensor.h>

namespace tenon {

class HookList;
class ReplicaSet;
struct Node;
struct RetainedGrad;
void retain(Node*);
void release(Node*);

// The part of a tensor that autograd needs. Other tensors do not have one.
struct AutogradMeta {
  bool requires_grad = false;
  uint64_t number = 0;                     // for recording::switched; 0: not asked for yet
  Ref<Node> node;                          // the node that computed it; null for a leaf
  uint32_t output = 0;                     // the index of this tensor among the outputs of the node
  Tensor grad;                             // for a leaf
  std::shared_ptr<ReplicaSet> replicas;    // for parameters and buffers that other devices may read
  std::shared_ptr<HookList> hooks;         // for a leaf; those of other tensors are in their node
  std::shared_ptr<RetainedGrad> retained;  // after retain_grad; the node has it, too
};

struct TensorImpl : RefCounted, Pooled<TensorImpl> {
  // Makes a contiguous tensor at the start of its storage. `numel` must be the number of elements
  // of `shape`, which must be addressable.
  TensorImpl(DType dtype, Device device, const Shape& shape, int64_t numel, Ref<Storage> storage)
      : dtype(dtype),
        device(device),
        contiguous(true),
        format(contiguous_format),
        shape(shape),
        strides(Shape::row_major(shape)),
        offset(0),
        numel(numel),
        storage(std::move(storage)) {}
  TensorImpl(DType dtype, Device device, const Shape& shape, const Strides& strides, int64_t offset,
             Ref<Storage> storage);
  ~TensorImpl();

  DType dtype;
  Device device;
  bool contiguous;
  MemoryFormat format;  // the one that the strides mean: suggested_format in core/layout.h
  std::atomic<uint32_t> held_by_programs{0};  // of the handles, those of core/graph/program_ref.h
  Shape shape;
  Strides strides;
  int64_t offset;  // in elements
  int64_t numel;
  Ref<Storage> storage;
  std::unique_ptr<AutogradMeta> autograd;

  // Returns the address of the first element; null if there are no elements.
  void* data() const {
    return storage->data
               ? static_cast<char*>(storage->data) + offset * static_cast<int64_t>(size_of(dtype))
               : nullptr;
  }
  AutogradMeta& meta() {
    if (!autograd) autograd = std::make_unique<AutogradMeta>();
    return *autograd;
  }
};

// Whether a gradient of this leaf goes through hooks: `hooks` may be a list that has become empty.
bool has_hooks(const TensorImpl& leaf);

bool is_contiguous(const Shape& shape, const Strides& strides);

// Returns the object behind a tensor. `impl_of` requires a defined tensor; `checked_impl` throws a
// ValueError that begins with `what` if the tensor is undefined.
inline TensorImpl& impl_of(const Tensor& tensor) { return *tensor.impl().get(); }
TENON_API TensorImpl& checked_impl(const Tensor& tensor, const char* what);

// Replaces storage, shape, dtype and device of `handle` by those of `values`. The handle keeps its
// identity, requires_grad and replicas; an existing grad is converted to the new dtype and device.
// It is for Module::to and for loading.
TENON_API void set_data(const Tensor& handle, const Tensor& values);

}  // namespace tenon
