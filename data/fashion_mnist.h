// Fashion-MNIST (H. Xiao, K. Rasul, R. Vollgraf, 2017; MIT license): 60 000 + 10 000 gray images of
// clothes, in MNIST's format.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <tenon/data/fetch.h>

namespace tenon::data {

// Returns the four files that mnist() reads, for fetch().
TENON_API std::span<const RemoteFile> fashion_mnist_files();

// Returns the name of a class: "T-shirt/top", "Trouser", …. Throws an IndexError for a number
// outside [0, 10).
TENON_API std::string_view fashion_mnist_class(int64_t label);

}  // namespace tenon::data
