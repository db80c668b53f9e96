// What a backward pass collects for a leaf, and how the devices that computed it are summed.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <tenon/core/autograd/node.h>

namespace tenon {

class Communicator;
class DeviceStream;

// Returns `more` where there is no sum yet.
Tensor add_up(const Tensor& sum, Tensor more);

// Gradients of one leaf that lie on several devices.
using Parts = std::vector<std::pair<Device, Tensor>>;

// The gradients that flow into a leaf, by device: those of a replica arrive on its device, and all
// are summed at the end in a fixed order.
struct LeafGradient {
  Ref<TensorImpl> leaf;
  Parts parts = {};
  bool hooked = false;    // there is one part, which the hooks have left
  bool deferred = false;  // parts on other devices stay there, as no_sync() says
  Parts held = {};        // by earlier passes; `parts` has them, too

  // Returns the devices of all parts, the leaf's own first, the others by kind and index.
  std::vector<Device> devices() const;
  void add_part(Tensor g);
  // Removes and returns the part on the device, which has to exist.
  Tensor take_part(Device device);
  // Removes all parts and returns their sum, on the device of the leaf.
  Tensor total();
  // Removes the part on the device of the leaf and returns it, an undefined tensor if there is
  // none. All others become tensors that nobody else sees.
  Tensor local();
};

// Sums the parts on devices that a plugin's collectives connect, in one launch for all leaves on
// the same devices; the first device keeps the sum. Other parts, and those of dtypes that the
// plugin does not sum, are left to `total`.
void reduce_parts(std::span<LeafGradient> leaves);

// Sums the gradients of leaves that several devices computed while the pass still runs, so that
// other parts of the pass are computed meanwhile: a bucket at a time, as soon as all gradients in
// it are finished. Buckets are filled in the order in which the graph finishes leaves, which is the
// same in every run, and each sum has the order of devices, so the bits are the same as well.
class Buckets {
 public:
  explicit Buckets(std::vector<LeafGradient>& leaves) : leaves_(leaves) {}
  // Looks through the graph above these nodes for leaves that may have replicas, and for the last
  // node that sends each of them something. Without such leaves, nothing happens afterwards.
  void look_ahead(std::span<const Ref<Node>> roots);
  // Call this when all nodes with numbers above `next` have been visited. `place_of` returns the
  // place of a leaf in `leaves`, or the number of leaves for one that got no gradient.
  template <class PlaceOf>
  void advance(uint64_t next, const PlaceOf& place_of) {
    while (at_ < ends_.size() && ends_[at_].sequence > next) collect(place_of(ends_[at_++].leaf));
  }
  // Sums what is left in the last bucket, when there is nothing left to be computed meanwhile.
  void finish() { sum_bucket(false); }

 private:
  struct End {
    uint64_t sequence;  // of the last node
    TensorImpl* leaf;
  };
  void collect(size_t place);
  void sum_bucket(bool overlaps);
  void sum_by_collectives(bool overlaps);
  void sum_in_place(bool overlaps);
  void sum_by_copies();  // of devices that share nothing, such as those of several kinds

  std::vector<LeafGradient>& leaves_;
  std::vector<End> ends_;  // the first to end first
  size_t at_ = 0;
  std::vector<size_t> bucket_;      // places in leaves_
  std::vector<Device> devices_;     // of all in it
  Communicator* joined_ = nullptr;  // that joins these devices, if a plugin does
  bool adds_in_place_ = false;      // a device can add up what the others have in its own memory
  uint64_t bytes_ = 0;              // of the gradients in it, on one device
};

}  // namespace tenon
