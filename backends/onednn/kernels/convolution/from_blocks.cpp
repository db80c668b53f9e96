#include "kernels/convolution/from_blocks.h"

#include <cstring>

namespace tenon::onednn {
namespace {

typedef float Four __attribute__((vector_size(16)));

Four load(const float* from) {
  Four v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
void store(float* to, Four v) { std::memcpy(to, &v, sizeof v); }

// The four columns of the matrix that has these rows go to rows of their own, `step` apart.
void turn(Four v0, Four v1, Four v2, Four v3, float* to, int64_t step) {
  const Four a = __builtin_shufflevector(v0, v1, 0, 4, 1, 5),
             b = __builtin_shufflevector(v0, v1, 2, 6, 3, 7),
             c = __builtin_shufflevector(v2, v3, 0, 4, 1, 5),
             d = __builtin_shufflevector(v2, v3, 2, 6, 3, 7);
  store(to, __builtin_shufflevector(a, c, 0, 1, 4, 5));
  store(to + step, __builtin_shufflevector(a, c, 2, 3, 6, 7));
  store(to + 2 * step, __builtin_shufflevector(b, d, 0, 1, 4, 5));
  store(to + 3 * step, __builtin_shufflevector(b, d, 2, 3, 6, 7));
}

}  // namespace

std::optional<FromBlocks> FromBlocks::between(const Desc& blocks, const Desc& rows) {
  const auto &from = blocks.format_desc.blocking, &to = rows.format_desc.blocking;
  if (blocks.data_type != dnnl_f32 || rows.data_type != dnnl_f32 || blocks.ndims != 4 ||
      blocks.format_kind != dnnl_blocked || from.inner_nblks != 2 || to.inner_nblks != 0)
    return std::nullopt;
  const int64_t block = from.inner_blks[0], height = blocks.dims[2], width = blocks.dims[3],
                taps = height * width;
  const bool channels = from.inner_idxs[0] == 1 && from.inner_idxs[1] == 0 &&
                        from.inner_blks[1] == block && (block == 8 || block == 16) &&
                        blocks.dims[0] % block == 0 && blocks.dims[1] % block == 0;
  const bool in_order = from.strides[3] == block * block &&
                        from.strides[2] == width * block * block && to.strides[3] == 1 &&
                        to.strides[2] == width && to.strides[1] == taps;
  if (!channels || !in_order) return std::nullopt;
  FromBlocks made;
  made.block_ = block;
  made.outs_ = blocks.dims[0] / block, made.ins_ = blocks.dims[1] / block;
  made.out_step_ = from.strides[0], made.in_step_ = from.strides[1], made.row_ = to.strides[0];
  for (int64_t i = 0; i < block; ++i)
    for (int64_t tap = 0; tap < taps; ++tap) made.places_.push_back((tap * block + i) * block);
  return made;
}

void FromBlocks::copy(const float* blocks, float* rows) const {
  const auto length = static_cast<int64_t>(places_.size());  // a multiple of 8
  const int64_t* const place = places_.data();
  for (int64_t out = 0; out < outs_; ++out)
    for (int64_t in = 0; in < ins_; ++in)
      for (int64_t o = 0; o < block_; o += 4) {
        const float* const from = blocks + out * out_step_ + in * in_step_ + o;
        float* const to = rows + (out * block_ + o) * row_ + in * length;
        for (int64_t at = 0; at < length; at += 4)
          turn(load(from + place[at]), load(from + place[at + 1]), load(from + place[at + 2]),
               load(from + place[at + 3]), to + at, row_);
      }
}

}  // namespace tenon::onednn
