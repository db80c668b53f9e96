#include "values.h"

#include <algorithm>
#include <cstring>

namespace tenon::reader {
namespace {

constexpr size_t kPieceBytes = size_t{64} << 20;

// A box of elements that follow each other in the row-major order.
struct Piece {
  std::vector<hsize_t> start, count;
  size_t elements = 1;
};

// Which pieces a data set is read in: `step` rows of the dimension `split` at once.
struct Plan {
  size_t split = 0;
  hsize_t step = 1;
};

Plan plan_for(const Item& item, hid_t properties) {
  const size_t rank = item.dims.size();
  Plan plan;
  uint64_t below = size_of(item.type);  // the bytes of one row of dimension `split`
  for (size_t i = 1; i < rank; ++i) below *= item.dims[i];
  while (below > kPieceBytes && plan.split + 1 < rank) below /= item.dims[++plan.split];
  plan.step =
      std::clamp<uint64_t>(kPieceBytes / std::max<uint64_t>(below, 1), 1, item.dims[plan.split]);
  if (H5Pget_layout(properties) != H5D_CHUNKED) return plan;
  // Whole rows of chunks, so that each chunk is unpacked once.
  std::vector<hsize_t> chunk(rank);
  check(H5Pget_chunk(properties, static_cast<int>(rank), chunk.data()), "read its chunks");
  if (const hsize_t rows = chunk[plan.split]; plan.step > rows && plan.step < item.dims[plan.split])
    plan.step = plan.step / rows * rows;
  return plan;
}

// The type that a data set is read as. Words that are marked as bfloat16, and bool, are not
// converted.
Handle reading_type(hid_t dataset, const Item& item) {
  Handle stored(H5Dget_type(dataset), H5Tclose, "read its type");
  const bool as_stored = H5Tget_class(stored) == H5T_ENUM || (item.type == hdf5_wire::Type::bf16 &&
                                                              H5Tget_class(stored) == H5T_INTEGER);
  return as_stored ? std::move(stored) : memory_type(item.type);
}

}  // namespace

void read_values(hid_t file, const Item& item,
                 const std::function<void(const void* bytes, size_t count)>& send) {
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, "make access properties");
  check(H5Pset_chunk_cache(access, H5D_CHUNK_CACHE_NSLOTS_DEFAULT, kPieceBytes,
                           H5D_CHUNK_CACHE_W0_DEFAULT),
        "make access properties");
  const Handle dataset(H5Dopen2(file, item.path.c_str(), access), H5Dclose, "open it");
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose, "read its properties");
  const Handle type = reading_type(dataset, item);
  const size_t size = size_of(item.type), rank = item.dims.size();
  if (H5Tget_size(type) != size) throw Fault("its type has another size than before");
  std::vector<char> bytes;
  if (rank == 0) {
    bytes.resize(size);
    check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), "read its values");
    return send(bytes.data(), bytes.size());
  }
  if (std::find(item.dims.begin(), item.dims.end(), hsize_t{0}) != item.dims.end()) return;
  const Plan plan = plan_for(item, properties);
  const Handle space(H5Dget_space(dataset), H5Sclose, "read its shape");
  std::vector<hsize_t> start(rank, 0), count(rank, 1);
  for (size_t i = plan.split + 1; i < rank; ++i) count[i] = item.dims[i];
  for (;;) {
    count[plan.split] = std::min(plan.step, item.dims[plan.split] - start[plan.split]);
    hsize_t elements = 1;
    for (const hsize_t n : count) elements *= n;
    bytes.resize(elements * size);
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
          "select its values");
    const Handle memory(H5Screate_simple(1, &elements, nullptr), H5Sclose, "make a space");
    check(H5Dread(dataset, type, memory, space, H5P_DEFAULT, bytes.data()), "read its values");
    send(bytes.data(), bytes.size());
    // The next piece, as an odometer counts.
    start[plan.split] += count[plan.split];
    size_t at = plan.split;
    while (start[at] >= item.dims[at]) {
      if (at == 0) return;
      start[at] = 0;
      ++start[--at];
    }
  }
}

}  // namespace tenon::reader
