/* How many positions a window has, which the core and plugins have to count alike.
 *
 * Plain C11, as abi.h is.
 */
#ifndef TENON_PLUGINS_ABI_WINDOWS_H_
#define TENON_PLUGINS_ABI_WINDOWS_H_

#include <stdint.h>

/* Returns the number of positions of a window of `kernel` elements, `dilation` apart, that moves by
 * `stride` over `size` elements with `padding` on both sides, as PyTorch's pooling_output_shape
 * does; 0 if the window is larger than the padded input, unless `round_up` lets it reach beyond.
 * `round_up` counts a last position that reaches beyond the padding, but not one that starts in the
 * padding behind the input. The stride is at least 1. A kernel may be a dimension of an expanded
 * tensor, so that products need more than 64 bits. */
static inline int64_t tn_window_positions(int64_t size, int64_t kernel, int64_t stride,
                                          int64_t padding, int64_t dilation, int round_up) {
  __extension__ typedef __int128 wide;
  const wide taken = (wide)dilation * (kernel - 1) + 1;
  const wide room = (wide)size + (wide)padding * 2 - taken + (round_up ? stride - 1 : 0);
  if (room < 0) return 0;
  const int64_t positions = (int64_t)(room / stride) + 1;
  if (!round_up || (wide)(positions - 1) * stride < (wide)size + padding) return positions;
  return positions - 1;
}

#endif /* TENON_PLUGINS_ABI_WINDOWS_H_ */
