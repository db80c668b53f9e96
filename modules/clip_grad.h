// Functions that limit gradients, as torch.nn.utils has them. Call them between backward() and
// step().
#pragma once

#include <vector>

#include <tenon/core/tensor.h>

namespace tenon::nn::utils {

// Returns the norm of order norm_type of all elements of the tensors together, on the device of the
// first, a scalar in f64 if one of them is and otherwise in f32; infinity as the order gives the
// largest absolute value. Without elements it is 0. With `error_if_nonfinite` it waits for the
// norm, and throws a ValueError if it is not finite.
TENON_API Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type = 2,
                                bool error_if_nonfinite = false);

// Multiplies all gradients by max_norm / (total_norm + 1e-6), in place, if that is below 1. Nothing
// waits for the norm. Parameters without a gradient are left out; they may be on several devices.
// Throws a ValueError unless max_norm is at least 0.
TENON_API void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm,
                                     const Tensor& total_norm);

// Limits the norm of all gradients together to max_norm, with clip_grads_with_norm_, and returns
// what get_total_norm gave before. Parameters without a gradient are left out. Throws the errors of
// both.
TENON_API Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                                 double norm_type = 2, bool error_if_nonfinite = false);

// Limits each element of the gradients to [-clip_value, clip_value], in place. Throws a ValueError
// unless clip_value is at least 0.
TENON_API void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

}  // namespace tenon::nn::utils
