#pragma once

#include <string>

namespace plumbline {

// What libtorch says of itself, and how fast its float32 products are.
struct BlasSpeed {
  std::string torch_version;
  std::string
      blas;  // the name that libtorch was built with; which library answers to it is the system's choice
  double gflops = 0;
  bool slow = false;  // as slow as the reference BLAS
};

// Times a product of 384^3 a few times and keeps the best: 5 to 50 ms.
BlasSpeed MeasureBlas();

}  // namespace plumbline
