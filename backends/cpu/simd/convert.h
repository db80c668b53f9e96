// Conversion between dtypes, a row at a time.
#pragma once

#include "runtime/common.h"

namespace tenon::cpu {

// `n` elements from `src` to `dst`, both contiguous. Float to integer truncates; to bool is != 0;
// f16 and bf16 round to even.
using ConvertRow = void (*)(int64_t n, void* dst, const void* src);
ConvertRow convert_row(tn_dtype to, tn_dtype from);

}  // namespace tenon::cpu
