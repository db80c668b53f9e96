// Pieces of a long text, to train language models.
#pragma once

#include <tenon/data/dataset.h>

namespace tenon::data {

// Windows of a text: example i has block_size tokens from token i · stride on as its data, and the
// tokens that follow each of them as its target. Batches are i64 (N, block_size) twice, the target
// one token further. Tokens at the end that fill no window are not used.
class TENON_API TextDataset : public Dataset {
 public:
  // Takes the tokens (T) of the text, i64, i32 or u8, which keep their type in memory. A stride of
  // 0 stands for block_size, with which no token is in two windows; with 1 there is a window at
  // every token (give the loader a RandomSampler with num_samples to end its epochs earlier).
  // Throws a ValueError if block_size is below 1, if stride is negative, or if the text has fewer
  // than block_size + 1 tokens; a ShapeError or DTypeError for other tokens.
  TextDataset(const Tensor& tokens, int64_t block_size, int64_t stride = 0);

  // Returns the number of windows.
  int64_t size() const override { return size_; }
  // Returns the windows with these numbers. Throws an IndexError if there is no such window.
  Batch get_batch(std::span<const int64_t> indices) const override;
  // Returns the length of a window.
  int64_t block_size() const { return block_size_; }
  // Returns the tokens (T), on cpu:0 and of the dtype in which they were given.
  const Tensor& tokens() const { return tokens_; }

 private:
  Tensor tokens_;
  int64_t block_size_, stride_, size_ = 0;
};

}  // namespace tenon::data
