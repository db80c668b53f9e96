// From one stack to another within a thread. swapcontext would make a system call each time, and
// the address sanitizer's version of it clears the shadow of the whole stack.
#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace tenon::emulated {

// Where a stack was left.
struct Place;

#if defined(__x86_64__)

struct Place {
  void* top = nullptr;  // of the stack, on which the registers lie that a function has to keep
};

// Leaves for `to`, and returns when somebody leaves for `from`.
extern "C" void tenon_switch_stack(void** from, void* to);
asm(R"(
.pushsection .text
.type tenon_switch_stack, @function
tenon_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tenon_switch_stack, . - tenon_switch_stack
.type tenon_begin_stack, @function
tenon_begin_stack:
  movq %r12, %rdi
  xorl %ebp, %ebp
  call *%rbx
  ud2
.size tenon_begin_stack, . - tenon_begin_stack
.popsection
)");
extern "C" void tenon_begin_stack();

inline void switch_stack(Place& from, const Place& to) { tenon_switch_stack(&from.top, to.top); }

// The first switch to `place` calls `body`, which never returns, with `self`.
inline void prepare_stack(Place& place, void* stack, size_t bytes, void (*body)(void*),
                          void* self) {
  auto* words = reinterpret_cast<uint64_t*>(static_cast<char*>(stack) + bytes);
  const auto word = [](auto* p) { return reinterpret_cast<uint64_t>(p); };
  *--words = 0;  // two words, because a call needs the stack at a multiple of 16
  *--words = 0;
  *--words = word(&tenon_begin_stack);
  *--words = 0;           // rbp
  *--words = word(body);  // rbx
  *--words = word(self);  // r12
  for (int i = 13; i <= 15; ++i) *--words = 0;
  place.top = words;
}

#else

struct Place {
  ucontext_t context;
};

inline void switch_stack(Place& from, const Place& to) { swapcontext(&from.context, &to.context); }

inline void prepare_stack(Place& place, void* stack, size_t bytes, void (*body)(void*),
                          void* self) {
  getcontext(&place.context);
  place.context.uc_stack.ss_sp = stack;
  place.context.uc_stack.ss_size = bytes;
  place.context.uc_link = nullptr;
  struct Begin {
    static void at(unsigned b1, unsigned b2, unsigned s1, unsigned s2) {
      const auto whole = [](unsigned low, unsigned high) { return uint64_t{high} << 32 | low; };
      reinterpret_cast<void (*)(void*)>(whole(b1, b2))(reinterpret_cast<void*>(whole(s1, s2)));
    }
  };
  const auto b = reinterpret_cast<uint64_t>(body), s = reinterpret_cast<uint64_t>(self);
  const auto low = [](uint64_t w) { return static_cast<unsigned>(w); };
  makecontext(&place.context, reinterpret_cast<void (*)()>(Begin::at), 4, low(b), low(b >> 32),
              low(s), low(s >> 32));
}

#endif

}  // namespace tenon::emulated
