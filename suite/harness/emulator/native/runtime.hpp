// What a program and the emulator's scheduler agree on: the thread's coordinates and the few calls
// through which a thread can wait. Everything else of CUDA is in the headers of ../cuda, inline.
#pragma once

struct uint3 {
  unsigned x, y, z;
};

// The host thread that runs a block sets these whenever it takes up another fiber.
#define EMU_HOT __attribute__((visibility("default"), tls_model("initial-exec")))
extern "C" {
extern __thread uint3 threadIdx EMU_HOT;
extern __thread uint3 blockIdx EMU_HOT;
extern __thread uint3 blockDim EMU_HOT;
extern __thread uint3 gridDim EMU_HOT;
extern __thread unsigned emu_polls EMU_HOT;   // atomics and volatile loads of this host thread
extern __thread unsigned emu_racing EMU_HOT;  // whether plain stores let other threads go first
}
#undef EMU_HOT

namespace emu_core {

typedef unsigned long long word;

// Families of warp collectives; lanes meet only in the same family under the same mask.
enum Collective : unsigned { SYNCWARP, SHUFFLE, VOTE, MATCH_ANY, MATCH_ALL, REDUCE, FAMILIES };

// How REDUCE combines; travels in the `source` argument of emu_collective.
enum Reduction : unsigned { ADD, MIN_SIGNED, MAX_SIGNED, MIN_UNSIGNED, MAX_UNSIGNED, AND, OR, XOR };

typedef void (*Kernel)(const word* arguments);

struct Launch {
  const char* name;
  Kernel kernel;
  const word* arguments;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;          // dynamic
  unsigned workers;               // host threads, at most
  unsigned backward;              // last thread and last block first, and stores race
  void (*shared)(char** bounds);  // start of the block's shared memory, start of its dynamic part
};

enum Outcome : int { DONE = 0, DEADLOCK = 1, TRAP = 2, NO_MEMORY = 3 };

}  // namespace emu_core

#pragma GCC visibility push(default)
extern "C" {
// Blocks until every live lane of `mask` has called with the same family and mask.
// SHUFFLE: the value of lane `source`. VOTE: lanes with a nonzero value, and in the upper half the
// lanes that took part. MATCH_*: a lane mask. REDUCE: the combination of the values.
emu_core::word emu_collective(unsigned family, unsigned mask, emu_core::word value,
                              unsigned source);
// Blocks until every live thread of the block has called; threads with a nonzero predicate, and in
// the upper half the threads that took part.
emu_core::word emu_barrier(unsigned predicate);
// Lanes that reached this call together.
unsigned emu_activemask();
void emu_yield();
void emu_race(const void* at);  // before a plain store to `at`
emu_core::word emu_clock();     // nanoseconds
[[noreturn]] void emu_trap(const char* what);
}
#pragma GCC visibility pop
