// Transforms that mix the examples of a batch, for LoaderOptions::transform_batch.
#pragma once

#include <tenon/data/dataset.h>
#include <tenon/data/random.h>

namespace tenon::data {

// Says what targets are and how much is mixed.
struct MixOptions {
  // Sets the number of classes of labels; 0 if the target has probabilities (N, C) already.
  int64_t num_classes = 0;
  // Shares are drawn from the Beta distribution (alpha, alpha).
  double alpha = 1;
};

// Adds to each example the one in front of it, with one random share for the whole batch (Zhang et
// al., ICLR 2018): {.transform_batch = MixUp({.num_classes = 10, .alpha = 0.2})}. Takes f32 data
// (N, …) and labels (N) of i64 or i32, or probabilities (N, C) of f32, and returns probabilities,
// which cross_entropy takes. The constructor throws a ValueError for a negative num_classes and an
// alpha that is not finite and positive; the call throws a DTypeError or ShapeError for another
// batch, and an IndexError for a label outside [0, num_classes).
class TENON_API MixUp {
 public:
  // Makes the transform for these options.
  explicit MixUp(const MixOptions& options);
  // Returns the mixed batch: data (N, …) and probabilities (N, C), both f32 on cpu:0.
  Batch operator()(const Batch& batch, Random& random) const;

 private:
  MixOptions options_;
};

// Puts a rectangle of the image in front into each image, whose area decides the share of its class
// (Yun et al., ICCV 2019). The data is (N, C, H, W); otherwise it takes and throws what MixUp does.
class TENON_API CutMix {
 public:
  // Makes the transform for these options.
  explicit CutMix(const MixOptions& options);
  // Returns the mixed batch: images (N, C, H, W) and probabilities (N, C), both f32 on cpu:0.
  Batch operator()(const Batch& batch, Random& random) const;

 private:
  MixOptions options_;
};

}  // namespace tenon::data
