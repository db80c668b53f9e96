// What has to be refused by the compiler, in words that help: see CMakeLists.txt. Without REFUSED
// it all compiles.
#include <memory>
#include <utility>
#include <vector>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

struct Base : nn::Module<Base> {
  nn::Linear fc{2, 2};
  Tensor forward(const Tensor& x) { return fc(x); }
};
// Each a type of its own: a type is refused once.
#ifdef REFUSED
template <int>
struct Derived : Base {
  nn::Linear more{2, 2};
};
#else
template <int N>
struct Derived : nn::Module<Derived<N>> {
  Base base;
  nn::Linear more{2, 2};
  Tensor forward(const Tensor& x) { return more(base(x)); }
};
#endif

template <class T>
struct Holds : nn::Module<Holds<T>> {
  T field;
};

struct Pointers : nn::Module<Pointers> {
  std::vector<std::unique_ptr<nn::Linear>> layers;
};

class Closed : public nn::Module<Closed> {
 public:
  explicit Closed(int64_t size) : fc_(size, 2) {}
  Tensor forward(const Tensor& x) { return fc_(x); }
#ifdef REFUSED
  static constexpr int num_fields = 1;
#else
  void fields(nn::FieldVisitor& v) { v("fc", fc_); }
#endif

 private:
  nn::Linear fc_;
};

}  // namespace

int main() {
  Tensor x = ones({2, 2}), y = ones({2});
#ifdef REFUSED
  x[0] = y;
  x[0] = 2;
  nn::repeat(3, nn::Linear(2, 2));
  nn::repeat(3, 7);
  nn::clone(Pointers());
  tensor(std::vector<unsigned>{1});
  var(x, {1}, true);
  auto compiled = compile([](const Tensor& t) { return t; });
  compiled(2.0);
  compiled(x, y);
  compiled();
  compile([](const Tensor& t) { return t.numel(); })(x);
#else
  x[0].copy_(y);
  x[0].fill_(2);
  nn::repeat(3, [] { return nn::Linear(2, 2); });
  tensor(std::vector<long long>{1});
  var(x, 1, 1, true);
  auto compiled = compile([](const Tensor& t) { return t; });
  compiled(scalar(2.0));
  compiled(x(0));
#endif
  save("model.h5", Derived<10>());
  nn::DataParallel parallel(Derived<11>{});
  nn::clone(Derived<12>());
  nn::Sequential sequential(nn::Linear(2, 2), Derived<13>());
  nn::AnyModule any(std::make_shared<Derived<14>>());
  nn::repeat(2, [] { return Derived<15>(); });
  nn::parameters(Derived<16>());
  nn::ModuleList list;
  list.append(Derived<17>());
  Holds<Derived<18>>().parameters();
  Holds<std::vector<Derived<19>>>().parameters();
  Holds<std::unique_ptr<Derived<20>>>().parameters();
  load("model.h5", Derived<21>());
  nn::str(Derived<22>());
  Closed(2).parameters();
}
