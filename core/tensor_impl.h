// What a Tensor handle points to. Not installed.
#pragma once

#include <memory>

#include <tenon/core/base/pool.h>
#include <tenon/core/base/ref.h>
#include <tenon/core/storage.h>
#include <tenon/core/tensor.h>

namespace tenon {

class ReplicaSet;
struct Node;
void retain(Node*);
void release(Node*);

// Only tensors that take part in autograd have one.
struct AutogradMeta {
  bool requires_grad = false;
  Ref<Node> node;                        // what made it; null for a leaf
  uint32_t output = 0;                   // which of the node's outputs it is
  Tensor grad;                           // of a leaf
  std::shared_ptr<ReplicaSet> replicas;  // where a parameter or buffer may be read on other devices
};

struct TensorImpl : RefCounted, Pooled<TensorImpl> {
  // A contiguous tensor at the start of its storage; `numel` follows from `shape`, which is
  // addressable.
  TensorImpl(DType dtype, Device device, const Shape& shape, int64_t numel, Ref<Storage> storage)
      : dtype(dtype),
        device(device),
        contiguous(true),
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
  Shape shape;
  Strides strides;
  int64_t offset;  // in elements
  int64_t numel;
  Ref<Storage> storage;
  std::unique_ptr<AutogradMeta> autograd;

  // First element; null where there are none.
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

bool is_contiguous(const Shape& shape, const Strides& strides);

// The handle behind a tensor; ValueError "<what>: undefined tensor" where there is none.
inline TensorImpl& impl_of(const Tensor& tensor) { return *tensor.impl().get(); }
TENON_API TensorImpl& checked_impl(const Tensor& tensor, const char* what);

// Replaces what `handle` points at by `values` (storage, shape, dtype, device) and keeps its
// identity, requires_grad and replicas; an existing grad is moved along to the new dtype and
// device. For Module::to and loading.
TENON_API void set_data(const Tensor& handle, const Tensor& values);

}  // namespace tenon
