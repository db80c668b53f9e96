// Inputs that several jobs of a plan read in the same layout: all threads reorder them together,
// in a stage of their own, instead of each job for itself.
#pragma once

#include <vector>

#include "kernels/convolution/conv.h"

namespace tenon::onednn {

class SharedInputs {
 public:
  // `threads` may reorder an input, in as many pieces.
  SharedInputs(Work& work, int64_t threads) : work_(work), threads_(threads) {}

  // The input at `from` in the layout `wanted`, which is in scratch memory if it is not there yet.
  // Pieces are cut along `dim`. The same question has the same answer.
  Argument in_layout(const Argument& from, const Desc& wanted, Code code, int dim);
  // Adds the jobs that reorder to `work`; those that read the inputs are for a later stage.
  void add_jobs(Work& work) const;

 private:
  struct Input {
    Argument from, to;
  };
  Work& work_;
  int64_t threads_;
  std::vector<Input> inputs_;
  std::vector<Step> pieces_;
};

// Dimensions of feature maps along which pieces are cut.
inline constexpr int kImages = 0, kRows = 2;

// `desc` for so many images, if in this layout one image follows another; else an empty one.
Desc for_images(Desc desc, int64_t images);

}  // namespace tenon::onednn
