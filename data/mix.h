// Mixes the examples of a batch: LoaderOptions::transform_batch.
#pragma once

#include <tenon/data/dataset.h>
#include <tenon/data/random.h>

namespace tenon::data {

struct MixOptions {
  int64_t num_classes = 0;  // of labels; 0 if the target has probabilities (N, C) already
  double alpha = 1;         // shares are drawn from the Beta distribution (alpha, alpha)
};

// Adds to each example the one in front of it, with one random share for the whole batch (Zhang et
// al., ICLR 2018): {.transform_batch = MixUp({.num_classes = 10, .alpha = 0.2})}. Takes f32 data
// (N, …) and labels (N) of i64 or i32, or probabilities (N, C) of f32, and returns probabilities,
// which cross_entropy takes. The constructor throws a ValueError for a negative num_classes and an
// alpha that is not positive; the call throws a DTypeError or ShapeError for another batch, and an
// IndexError for a label outside [0, num_classes).
class TENON_API MixUp {
 public:
  explicit MixUp(const MixOptions& options);
  Batch operator()(const Batch& batch, Random& random) const;

 private:
  MixOptions options_;
};

// The same with a rectangle of the image in front, whose area decides the share of its class (Yun
// et al., ICCV 2019). The data is (N, C, H, W).
class TENON_API CutMix {
 public:
  explicit CutMix(const MixOptions& options);
  Batch operator()(const Batch& batch, Random& random) const;

 private:
  MixOptions options_;
};

}  // namespace tenon::data
