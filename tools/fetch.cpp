#include <iostream>

#include <tenon/core/error.h>
#include <tenon/data/fashion_mnist.h>

#include "commands.h"

namespace tenon::tools {

void fetch_data(const std::string& name, const std::string& folder) {
  if (name != "fashion-mnist")
    throw DataError("no data set '" + name + "'; there is: fashion-mnist");
  data::fetch(data::fashion_mnist_files(), folder,
              [](const std::string& line) { std::cout << line << std::endl; });
}

}  // namespace tenon::tools
