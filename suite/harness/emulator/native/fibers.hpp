// A fiber's saved state and the stacks that fibers run on.
//
// On x86-64 a switch saves the callee-saved registers and nothing else (a kernel does not change
// the rounding mode); elsewhere, or with EMU_PORTABLE, ucontext does the same, slower.
#pragma once

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__) && !defined(EMU_PORTABLE)
#define EMU_PORTABLE
#endif

#ifdef EMU_PORTABLE
#include <ucontext.h>
#endif

namespace emu_core {

#ifdef EMU_PORTABLE

struct Context {
  ucontext_t state;
  // `top` is a multiple of 16, `bottom` the lowest usable byte.
  void prepare(char* bottom, char* top, void (*entry)()) {
    getcontext(&state);
    state.uc_stack.ss_sp = bottom;
    state.uc_stack.ss_size = static_cast<size_t>(top - bottom);
    state.uc_link = nullptr;
    makecontext(&state, entry, 0);
  }
};
inline void swap(Context& from, Context& to) { swapcontext(&from.state, &to.state); }

#else

struct Context {
  void* sp;
  void prepare(char*, char* top, void (*entry)()) {
    void** frame = reinterpret_cast<void**>(top);
    *--frame = nullptr;  // entry's return address; entry starts as if it had been called
    *--frame = reinterpret_cast<void*>(entry);
    *--frame = nullptr;  // rbp
    sp = frame;
  }
};
// Inline, and by a jump: after a call, or by a return, a processor would mispredict the returns that
// follow. Below the stack pointer a function may keep 128 bytes.
__attribute__((always_inline)) inline void swap(Context& from, Context& to) {
  void** save = &from.sp;
  void* load = to.sp;
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"
      "leaq 1f(%%rip), %%rcx\n\t"
      "pushq %%rcx\n\t"
      "pushq %%rbp\n\t"
      "movq %%rsp, (%0)\n\t"
      "movq %1, %%rsp\n\t"
      "popq %%rbp\n\t"
      "popq %%rcx\n\t"
      "jmp *%%rcx\n"
      "1:\n\t"
      "leaq 128(%%rsp), %%rsp"
      : "+a"(save), "+d"(load)
      :
      : "rbx", "rcx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory",
        "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

#endif

constexpr unsigned MAX_THREADS = 1024;

// Stacks of one host thread: slots of one mapping, each above a guard page. Usable memory appears
// when a slot is first taken.
class Stacks {
 public:
  static constexpr size_t LOCAL = 512 << 10;            // of a thread, as on the GPU
  static constexpr size_t USABLE = LOCAL + (16 << 10);  // and the scheduler's own

  bool ready() const { return base_ != nullptr; }

  bool reserve() {
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* at = mmap(nullptr, MAX_THREADS * pitch(), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return false;
    base_ = static_cast<char*>(at);
    reset();
    return true;
  }

  void reset() {
    free_ = 0;
    for (unsigned slot = MAX_THREADS; slot-- > 0;)
      list_[free_++] = static_cast<unsigned short>(slot);
  }

  // A free slot; there are as many as threads in a block. Fails only when memory runs out.
  bool take(unsigned& slot) {
    slot = list_[--free_];
    if (slot < opened_) return true;
    if (mprotect(bottom(slot), USABLE, PROT_READ | PROT_WRITE) != 0) return false;
    opened_ = slot + 1;
    return true;
  }

  void give(unsigned slot) { list_[free_++] = static_cast<unsigned short>(slot); }

  char* bottom(unsigned slot) const { return base_ + slot * pitch() + page_; }

  // Slots start at different cache sets; at equal page offsets 32 stacks would share a few lines.
  char* top(unsigned slot) const { return bottom(slot) + USABLE - slot % 20 * 192; }

  bool hold(const char* address) const {
    return base_ != nullptr && address >= base_ && address < base_ + MAX_THREADS * pitch();
  }

  bool guards(const char* address) const {
    return hold(address) && static_cast<size_t>(address - base_) % pitch() < page_;
  }

 private:
  size_t pitch() const { return USABLE + page_; }

  char* base_ = nullptr;
  size_t page_ = 0;
  unsigned free_ = 0;
  unsigned opened_ = 0;  // slots below are usable; the list hands them out in ascending order
  unsigned short list_[MAX_THREADS];
};

}  // namespace emu_core
