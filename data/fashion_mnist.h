// Fashion-MNIST (H. Xiao, K. Rasul, R. Vollgraf, 2017; MIT licence): 60 000 + 10 000 grey images of
// clothes, in MNIST's format.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <tenon/data/fetch.h>

namespace tenon::data {

// The four files that mnist() reads.
TENON_API std::span<const RemoteFile> fashion_mnist_files();

// "T-shirt/top", "Trouser", …: the name of a class in [0, 10).
TENON_API std::string_view fashion_mnist_class(int64_t label);

}  // namespace tenon::data
