// The parts by which the children, parameters and buffers of a module of any type are found.
#pragma once

#include <array>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <tenon/modules/parameter.h>
#include <tenon/modules/reflect.h>

namespace tenon::nn {

class FieldVisitor;

// The base of nn::Module<T>, which distinguishes modules from other fields.
struct TENON_API ModuleTag {
  ModuleTag() = default;
  ModuleTag(const ModuleTag&) = default;
  // Assigns nothing itself, but tells compiled functions, which may depend on the module's numbers.
  ModuleTag& operator=(const ModuleTag&) noexcept;
};

// The description of a type of modules. There is one object for each type.
struct ModuleType {
  std::string_view name;                             // "Linear", as it prints
  void (*visit)(void* self, FieldVisitor& visitor);  // passes every field to the visitor, in order
  std::string (*extra_repr)(const void* self);       // null: prints nothing between the parentheses
  // Calls the copy constructor; null for a type that has none.
  std::shared_ptr<void> (*copy)(const void* self);
  size_t size;   // bytes of the object
  bool wrapper;  // wraps a model in a field, whose name becomes a prefix of every key
  bool list;     // prints runs of equal children as one line, as ModuleList does
  bool by_hand;  // its own fields() names its fields, so something may be left out
};

// A reference to a module of any type, which it does not own. Functions take it as a parameter.
struct ModuleRef {
  void* self = nullptr;              // the module; null if there is none
  const ModuleType* type = nullptr;  // the description of its type

  // Refers to no module.
  ModuleRef() = default;
  // Refers to the module at an address, whose type has this description.
  ModuleRef(void* self, const ModuleType* type) : self(self), type(type) {}
  // Refers to a module. It may change the module, as if it were not const.
  template <class M>
    requires std::is_base_of_v<ModuleTag, M>
  ModuleRef(const M& module);

  // Returns the module if its type is exactly M, otherwise null: `if (auto* linear =
  // m.as<nn::Linear>()) …`
  template <class M>
  M* as() const;
  // Returns whether both refer to the same module.
  friend bool operator==(const ModuleRef&, const ModuleRef&) = default;
};

template <class D>
struct Module;
namespace detail {
// Is true for a type that derives from nn::Module<M> itself. One that derives through another
// module would run the forward of that module.
template <class M>
concept OwnModule = std::is_base_of_v<Module<M>, M>;
}  // namespace detail

// Returns the description of M. Different types have descriptions at different addresses.
template <class M>
constexpr const ModuleType* module_type();

// ---- which fields count ----

// A module owns what its fields contain by value, in std::optional, std::unique_ptr,
// std::shared_ptr, std::vector, std::array or std::map (with string keys), in any nesting. Raw
// pointers and references own nothing and are ignored, and so are all other kinds of fields, as in
// PyTorch also a plain Tensor: a tensor that is to be saved and moved with the module is an
// nn::Buffer. A class that lists its fields by hand and has a std::vector or std::map of
// std::unique_ptr has to delete its copy constructor, because C++ reports that it has one.
namespace detail {

template <class T>
concept Complete = !std::is_class_v<T> || requires { sizeof(T); };
template <class T>
concept IsModule = std::is_class_v<T> && Complete<T> && std::is_base_of_v<ModuleTag, T>;
// Is true for a type that contains a module whose type is known only at run time, as AnyModule.
template <class T>
concept Erased = requires(const T& t) {
  { t.module_ref() } -> std::same_as<ModuleRef>;
};
template <class T>
struct Holder : std::false_type {};  // a type that contains at most one item
template <class T>
struct Holder<std::optional<T>> : std::true_type {
  using Item = T;
};
template <class T, class D>
struct Holder<std::unique_ptr<T, D>> : std::true_type {
  using Item = T;
};
template <class T>
struct Holder<std::shared_ptr<T>> : std::true_type {
  using Item = T;
};
template <class T>
struct List : std::false_type {
};  // a type that contains any number of items, named by their number
template <class T, class A>
struct List<std::vector<T, A>> : std::true_type {
  using Item = T;
};
template <class T, size_t N>
struct List<std::array<T, N>> : std::true_type {
  using Item = T;
};
template <class T>
concept Map = requires {
  typename T::key_type;
  typename T::mapped_type;
} && std::is_convertible_v<typename T::key_type, std::string_view>;

template <class T>
constexpr bool counts() {
  if constexpr (!Complete<T>)
    return false;
  else if constexpr (std::is_same_v<T, Parameter> || std::is_same_v<T, Buffer> || IsModule<T> ||
                     Erased<T>)
    return true;
  else if constexpr (Holder<T>::value)
    return counts<std::remove_const_t<typename Holder<T>::Item>>();
  else if constexpr (List<T>::value)
    return counts<typename List<T>::Item>();
  else if constexpr (Map<T>)
    return counts<typename T::mapped_type>();
  else
    return false;
}
template <class T>
struct HidesModules : std::false_type {};  // any other container of modules
template <template <class...> class C, class... A>
struct HidesModules<C<A...>> : std::bool_constant<(counts<A>() || ...)> {};

// An argument that converts to modules alone. A type is a plain struct that contains modules if one
// of its fields can be initialized by it, and not by just anything.
struct CountedArgument {
  template <class T>
    requires(counts<T>())
  constexpr operator T() const noexcept;
};
struct OddArgument {};
template <class T, class Argument, size_t... Before, size_t... After>
constexpr bool takes_at(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires {
    T{(void(Before), reflect::Anything{})..., Argument{}, (void(After), reflect::Anything{})...};
  };
}
template <class T>
constexpr bool struct_hides_modules() {
  if constexpr (std::is_class_v<T> && std::is_aggregate_v<T> && !List<T>::value) {
    constexpr size_t count = reflect::field_count<T, 0>;
    return []<size_t... I>(std::index_sequence<I...>) {
      return ((takes_at<T, CountedArgument>(std::make_index_sequence<I>(),
                                            std::make_index_sequence<count - I - 1>()) &&
               !takes_at<T, OddArgument>(std::make_index_sequence<I>(),
                                         std::make_index_sequence<count - I - 1>())) ||
              ...);
    }(std::make_index_sequence<count>());
  } else {
    return false;
  }
}
template <class T>
concept HasForward = requires(T& t, const Tensor& x) { t.forward(x); } || requires { &T::forward; };

}  // namespace detail

// Receives the fields of a module one by one. A class with private fields lists them itself:
//   void fields(nn::FieldVisitor& v) { v("weight", weight)("bias", bias)("training", training); }
// A field that the list leaves out would be neither trained nor saved nor moved. So Tenon looks for
// such fields when a module of the type is first called, saved or asked for its parameters or
// state. A parameter, buffer or module inside the object that is not listed is a ValueError; for a
// module without parameters only when it is called. An object outside may belong to another model,
// so it leads to a warning: for a std::vector with parameters that require a gradient at once, for
// a module in another container when it is first called. Three neighboring
// raw pointers can look like a vector; the warning says what to do and can be ignored. Absent
// parameters and parameters that are tied to listed ones may be left out.
class TENON_API FieldVisitor {
 public:
  FieldVisitor() = default;
  FieldVisitor(const FieldVisitor&) = delete;
  FieldVisitor& operator=(const FieldVisitor&) = delete;
  virtual ~FieldVisitor();

  // Takes a field of the module under its name, and returns *this. Other fields than those above
  // and a bool "training" are passed over; one whose modules would be missed does not compile.
  template <class F>
  FieldVisitor& operator()(std::string_view name, F& field);

 protected:
  // The functions below do nothing unless they are overridden. A name is valid during the call
  // only, and fields that are absent are left out.

  // Is called for every field, before any of the other functions.
  virtual void listed(const void* field, size_t bytes);
  // Is called for a parameter.
  virtual void parameter(std::string_view name, Tensor& tensor);
  // Is called for a buffer.
  virtual void buffer(std::string_view name, Tensor& tensor, bool persistent);
  // Is called for a module, and for a container of modules or tensors.
  virtual void child(std::string_view name, ModuleRef module);
  // Is called for the field "training".
  virtual void training(bool& flag);
  // Is called before `child` for a module that a std::shared_ptr owns, if `wants_owners` is set. It
  // may replace the pointer by one to another object of that type.
  virtual void owner(std::shared_ptr<void>& owner, const ModuleType& type);
  bool wants_owners = false;  // whether `owner` is called
};

template <class F>
FieldVisitor& FieldVisitor::operator()(std::string_view name, F& const_field) {
  using T = std::remove_const_t<F>;
  T& field = const_cast<T&>(const_field);
  if constexpr (detail::Complete<T>) listed(std::addressof(field), sizeof(T));
  if constexpr (!detail::Complete<T>) {
  } else if constexpr (std::is_same_v<T, Parameter>) {
    if (field.defined()) parameter(name, field);
  } else if constexpr (std::is_same_v<T, Buffer>) {
    if (field.defined()) buffer(name, field, field.persistent());
  } else if constexpr (detail::IsModule<T>) {
    child(name, ModuleRef(field));
  } else if constexpr (detail::Erased<T>) {
    if (wants_owners && field.module_ref().self) owner(field.owner(), *field.module_ref().type);
    if (ModuleRef module = field.module_ref(); module.self) child(name, module);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (name == "training") training(field);
  } else if constexpr (detail::counts<T>()) {
    if constexpr (detail::Holder<T>::value) {
      if constexpr (requires { field.use_count(); } &&
                    detail::IsModule<std::remove_const_t<typename detail::Holder<T>::Item>>) {
        if (wants_owners && field) {
          std::shared_ptr<void> shared =
              std::const_pointer_cast<std::remove_const_t<typename detail::Holder<T>::Item>>(field);
          owner(shared, *ModuleRef(*field).type);
          field = std::static_pointer_cast<typename detail::Holder<T>::Item>(shared);
        }
      }
      if (field) (*this)(name, *field);
    } else {
      child(name, ModuleRef(&field, module_type<T>()));
    }
  } else {
    static_assert(!detail::HasForward<T>,
                  "this field has a forward() but is no module, so its parameters would be missed: "
                  "derive its type T from nn::Module<T>");
    static_assert(
        !detail::struct_hides_modules<T>(),
        "this field is a struct with modules in it, which would be missed: derive its type T from "
        "nn::Module<T>");
    static_assert(!detail::HidesModules<T>::value,
                  "modules in a container that is not known here would be missed: use std::vector, "
                  "std::array, std::optional, std::map or a smart pointer");
  }
  return *this;
}

// ---- the description of a type ----
namespace detail {

template <class M>
constexpr bool listed_by_hand = requires(M& m, FieldVisitor& v) { m.fields(v); };
template <class M>
constexpr size_t number_of_fields() {
  if constexpr (requires { M::num_fields; })
    return static_cast<size_t>(M::num_fields);
  else
    return reflect::field_count<M, 1>;
}

// Returns whether a copy constructor would compile. C++ reports that every std::vector and map has
// one, whatever its elements are, so the fields of modules are examined; the fields of modules that
// list them by hand cannot be. `Seen` ends the recursion for a type that contains itself.
template <class T, class... Seen>
constexpr bool copies() {
  if constexpr (!Complete<T> || (std::is_same_v<T, Seen> || ...)) {
    return true;
  } else if constexpr (!std::is_copy_constructible_v<T>) {
    return false;
  } else if constexpr (List<T>::value) {
    return copies<typename List<T>::Item, Seen...>();
  } else if constexpr (Map<T>) {
    return copies<typename T::mapped_type, Seen...>();
  } else if constexpr (IsModule<T>) {
    if constexpr (OwnModule<T> && !listed_by_hand<T> &&
                  (std::is_aggregate_v<T> || requires { T::num_fields; })) {
      using Fields = decltype(reflect::bind<number_of_fields<T>()>(std::declval<T&>()));
      return []<class... F>(std::tuple<F*...>*) {
        return (copies<std::remove_const_t<F>, T, Seen...>() && ...);
      }(static_cast<Fields*>(nullptr));
    } else {
      return true;
    }
  } else {
    return true;
  }
}

template <class M>
void visit_fields(void* self, FieldVisitor& visitor) {
  M& module = *static_cast<M*>(self);
  if constexpr (List<M>::value) {
    size_t i = 0;
    for (auto& item : module) visitor(std::to_string(i++), item);
  } else if constexpr (Map<M>) {
    for (auto& [key, item] : module) visitor(key, item);
  } else if constexpr (requires { module.fields(visitor); }) {
    module.fields(visitor);
  } else if constexpr (requires { M::num_fields; }) {
    reflect::each_of<number_of_fields<M>()>(module, visitor);
  } else {
    static_assert(std::is_aggregate_v<M>,
                  "a module with a constructor has to say how many data members it has, such as "
                  "static constexpr int num_fields = 2; a wrong number does not compile. Or it "
                  "takes no constructor but fields "
                  "with defaults, set by name: Net{.hidden = 64}. One with private members names "
                  "them itself: "
                  "void fields(nn::FieldVisitor& v) { v(\"weight\", weight)(\"child\", child); }");
    if constexpr (std::is_aggregate_v<M>) reflect::each_of<number_of_fields<M>()>(module, visitor);
  }
}

template <class M>
constexpr ModuleType describe() {
  static_assert(!IsModule<M> || OwnModule<M>,
                "a module type T has to derive from nn::Module<T> itself, with its own name: "
                "through another module its fields "
                "would be missed and the other's forward be run; hold the other module as a field");
  ModuleType type{};
  if constexpr (!IsModule<M> || OwnModule<M>)
    type.visit = visit_fields<M>;  // otherwise the error above is enough
  type.size = sizeof(M);
  if constexpr (List<M>::value || Map<M>) {
    type.name = List<M>::value ? "ModuleList" : "ModuleDict";
    type.list = List<M>::value;
  } else {
    type.name = reflect::type_name<M>;
    if constexpr (requires { M::is_wrapper; }) type.wrapper = M::is_wrapper;
    if constexpr (requires { M::is_list; }) type.list = M::is_list;
    type.by_hand = listed_by_hand<M>;
    if constexpr (requires(const M& m) { std::string(m.extra_repr()); })
      type.extra_repr = [](const void* self) {
        return std::string(static_cast<const M*>(self)->extra_repr());
      };
    if constexpr (copies<M>())
      type.copy = [](const void* self) -> std::shared_ptr<void> {
        return std::make_shared<M>(*static_cast<const M*>(self));
      };
  }
  return type;
}

// The description of a type, exported so that all libraries see one address for it.
template <class M>
TENON_API inline constexpr ModuleType description = describe<M>();

}  // namespace detail

template <class M>
constexpr const ModuleType* module_type() {
  return &detail::description<M>;
}

template <class M>
  requires std::is_base_of_v<ModuleTag, M>
ModuleRef::ModuleRef(const M& module) : self(const_cast<M*>(&module)), type(module_type<M>()) {}

template <class M>
M* ModuleRef::as() const {
  return type == module_type<M>() ? static_cast<M*>(self) : nullptr;
}

}  // namespace tenon::nn
