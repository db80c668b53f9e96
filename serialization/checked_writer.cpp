#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <tenon/core/base/uninterrupted.h>
#include <tenon/core/format.h>
#include <tenon/serialization/checked_writer.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/parallel.h>

namespace tenon {
namespace {

// A chunk stays in the second-level cache while it is written and read back.
constexpr size_t kWrittenChunk = size_t{1} << 18;
static_assert(kWrittenChunk % kCheckpointPieceBytes == 0);
// From so many on, several threads write them: one takes as long to begin as to write a part.
constexpr uint64_t kMinChunks = 4;
constexpr uint64_t kSendBytes = uint64_t{16} << 20;
constexpr uint64_t kNobodysTurn = ~uint64_t{0};  // a chunk before could not be written

}  // namespace

// Has the system store what was written while more is written. A thread of its own does this: the
// call often waits until the disk takes more, two thirds of the time of a save.
class CheckedWriter::Sender {
 public:
  explicit Sender(int file) : file_(file), thread_([this] { run(); }) {}
  ~Sender() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    more_.notify_one();
    thread_.join();
  }
  Sender(const Sender&) = delete;
  void send(uint64_t until) {
    {
      const std::lock_guard lock(mutex_);
      until_ = until;
    }
    more_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (uint64_t sent = 0;;) {
      more_.wait(lock, [&] { return stopped_ || until_ >= sent + kSendBytes; });
      if (stopped_) return;
      const uint64_t begin = std::exchange(sent, until_), count = sent - begin;
      lock.unlock();
      // A hint: fsync stores what this does not, and reports what fails.
      sync_file_range(file_, static_cast<off_t>(begin), static_cast<off_t>(count),
                      SYNC_FILE_RANGE_WRITE);
      lock.lock();
    }
  }

  const int file_;
  std::mutex mutex_;
  std::condition_variable more_;
  uint64_t until_ = 0;
  bool stopped_ = false;
  std::thread thread_;  // the last member: it uses the others
};

// Memory for one chunk, of which there is as much as threads write.
class CheckedWriter::ReadBack {
 public:
  explicit ReadBack(CheckedWriter& writer) : writer_(writer) {
    const std::lock_guard lock(writer_.mutex_);
    if (writer_.spare_.empty()) {
      bytes_.reset(new std::byte[kWrittenChunk]);
      return;
    }
    bytes_ = std::move(writer_.spare_.back());
    writer_.spare_.pop_back();
  }
  ~ReadBack() {
    const std::lock_guard lock(writer_.mutex_);
    if (writer_.spare_.size() < writer_.spare_.capacity())
      writer_.spare_.push_back(std::move(bytes_));
  }
  ReadBack(const ReadBack&) = delete;
  std::byte* get() const { return bytes_.get(); }

 private:
  CheckedWriter& writer_;
  std::unique_ptr<std::byte[]> bytes_;
};

CheckedWriter::CheckedWriter(Fail fail) : fail_(std::move(fail)) {
  pending_.reserve(kWrittenChunk);
  pending_.resize(kCheckpointHeaderBytes);  // for the header; keeps later chunks at page boundaries
  size_ = kCheckpointHeaderBytes;
  spare_.reserve(kMaxThreads);
  spare_.emplace_back(new std::byte[kWrittenChunk]);
}
CheckedWriter::~CheckedWriter() = default;
void CheckedWriter::stop() noexcept { sender_.reset(); }

void CheckedWriter::append(const void* bytes, size_t count) {
  auto* from = static_cast<const std::byte*>(bytes);
  size_ += count;
  if (!pending_.empty()) {
    const size_t missing = std::min(count, kWrittenChunk - pending_.size());
    pending_.insert(pending_.end(), from, from + missing);
    from += missing, count -= missing;
    if (pending_.size() < kWrittenChunk) return;
  }
  const size_t whole = count - count % kWrittenChunk;
  write(pending_, {from, whole});
  pending_.assign(from + whole, from + count);
}

void CheckedWriter::flush() {
  write(pending_, {});
  pending_.clear();
}

// Writes one chunk, or a part of one, and many whole ones.
void CheckedWriter::write(Bytes first, Bytes rest) {
  const uint64_t in_front = first.empty() ? 0 : 1, chunks = in_front + rest.size() / kWrittenChunk;
  const uint64_t end = written_ + first.size() + rest.size();
  if (in_pieces_) pieces_.resize(count_of_pieces(end));
  turn_ = 0;
  const auto write_chunk = [&](uint64_t i) {
    const size_t at = (i - in_front) * kWrittenChunk;  // in the rest, unless it is the first
    if (i < in_front)
      write_and_sum(first, written_, i);
    else
      write_and_sum(rest.subspan(at, kWrittenChunk), written_ + first.size() + at, i);
  };
  if (chunks < kMinChunks)
    for (uint64_t i = 0; i < chunks; ++i) write_chunk(i);
  else
    in_parallel(chunks, write_chunk);
  written_ = end;
  send();
}

void CheckedWriter::write_and_sum(Bytes chunk, uint64_t offset, uint64_t number) {
  try {
    const ReadBack read_back(*this);
    write_and_read_back(chunk, offset, read_back.get());
    const size_t skip = offset == 0 ? kCheckpointHeaderBytes : 0;
    for (size_t at = skip; in_pieces_ && at < chunk.size();) {
      const size_t end =
          std::min(chunk.size(), at - at % kCheckpointPieceBytes + kCheckpointPieceBytes);
      pieces_[(offset + at) / kCheckpointPieceBytes] = checksum_of(read_back.get() + at, end - at);
      at = end;
    }
    // Chunks are begun in their order, so those before this one are written or being written.
    for (uint64_t now; (now = turn_.load(std::memory_order_acquire)) != number;) {
      if (now == kNobodysTurn) return;
      turn_.wait(now, std::memory_order_acquire);
    }
    body_.add(read_back.get() + skip, chunk.size() - skip);
    uint64_t mine = number;  // unless a later one has failed meanwhile
    turn_.compare_exchange_strong(mine, number + 1, std::memory_order_acq_rel);
  } catch (...) {
    turn_.store(kNobodysTurn, std::memory_order_release);
    turn_.notify_all();
    throw;
  }
  turn_.notify_all();
}

void CheckedWriter::write_and_read_back(Bytes chunk, uint64_t offset, std::byte* read_back) const {
  const size_t count = chunk.size();
  for (size_t done = 0; done < count;) {
    const ssize_t n = uninterrupted([&] {
      return pwrite(file_, chunk.data() + done, count - done, static_cast<off_t>(offset + done));
    });
    if (n <= 0)
      fail_(fmt::format("writing failed after {} bytes", offset + done), n < 0 ? errno : ENOSPC);
    done += static_cast<size_t>(n);
  }
  for (size_t done = 0; done < count;) {
    const ssize_t n = uninterrupted([&] {
      return pread(file_, read_back + done, count - done, static_cast<off_t>(offset + done));
    });
    if (n < 0) fail_("reading it back failed", errno);
    if (n == 0)
      fail_(fmt::format("reading it back failed: the file ends after {} bytes", offset + done), 0);
    done += static_cast<size_t>(n);
  }
  if (std::memcmp(read_back, chunk.data(), count) != 0)
    fail_(
        "what was read back differs from what was written: a faulty disk, or the tensors were "
        "changed while they were saved",
        0);
}

void CheckedWriter::send() {
  if (!sender_ && written_ < kSendBytes) return;
  try {
    if (!sender_) sender_ = std::make_unique<Sender>(file_);
    sender_->send(written_);
  } catch (const std::system_error&) {  // there are no more threads: fsync stores everything
  } catch (const std::bad_alloc&) {
  }
}

std::vector<Checksum> CheckedWriter::end_pieces() {
  flush();
  in_pieces_ = false;
  return std::move(pieces_);
}

Checksum CheckedWriter::body_checksum() {
  flush();
  return body_.result();
}

void CheckedWriter::finish(std::span<const std::byte> header) {
  flush();
  stop();
  write_and_read_back(header, 0, ReadBack(*this).get());
}

}  // namespace tenon
