#include "kernels/convolution/shared.h"

namespace tenon::onednn {
namespace {

Desc part_of(const Desc& whole, int dim, int64_t first, int64_t count) {
  Dims shape(whole.dims, whole.dims + whole.ndims), offsets(shape.size());
  shape[static_cast<size_t>(dim)] = count;
  offsets[static_cast<size_t>(dim)] = first;
  Desc part;
  check(dnnl_memory_desc_init_submemory(&part, &whole, shape.data(), offsets.data()),
        "a part of a tensor");
  return part;
}

// What pieces along a dimension must be multiples of.
int64_t block_along(const Desc& desc, int dim) {
  const auto& blocks = desc.format_desc.blocking;
  int64_t block = 1;
  for (int i = 0; i < blocks.inner_nblks; ++i)
    if (blocks.inner_idxs[i] == dim) block *= blocks.inner_blks[i];
  return block;
}

}  // namespace

Argument SharedInputs::in_layout(const Argument& from, const Desc& wanted, Code code, int dim) {
  if (same_layout(wanted, from.desc)) return from;
  for (auto& known : inputs_)
    if (known.from.operand == from.operand && known.from.offset == from.offset &&
        same_layout(known.from.desc, from.desc) && same_layout(known.to.desc, wanted))
      return known.to;
  const Argument to{from.name, kWorkspace, wanted, work_.reserve(bytes_of(wanted))};
  for_runs(wanted.dims[dim], threads_, block_along(wanted, dim), [&](int64_t first, int64_t count) {
    const Desc source = part_of(from.desc, dim, first, count),
               target = part_of(wanted, dim, first, count);
    pieces_.push_back({Primitive::reorder(source, target, code),
                       {{DNNL_ARG_FROM, from.operand, source, from.offset},
                        {DNNL_ARG_TO, kWorkspace, target, to.offset}}});
  });
  inputs_.push_back({from, to});
  return to;
}

void SharedInputs::add_jobs(Work& work) const {
  for (auto& piece : pieces_) work.add({piece});
}

Desc for_images(Desc desc, int64_t images) {
  const uint64_t bytes = bytes_of(desc);
  const int64_t before = desc.dims[0];
  desc.dims[0] = desc.padded_dims[0] = images;
  const bool follow =
      bytes_of(desc) * static_cast<uint64_t>(before) == bytes * static_cast<uint64_t>(images);
  return follow ? desc : Desc{};
}

}  // namespace tenon::onednn
