// The state of one host thread that runs blocks.
#pragma once

#include "fibers.hpp"
#include "runtime.hpp"
#include "text.hpp"

namespace emu_core {

// Lane masks say where each lane is; `ready` includes the lane that runs.
struct Warp {
  unsigned live;     // not exited
  unsigned ready;    // could run now
  unsigned started;  // has a stack
  unsigned waiting;  // in a collective
  unsigned barrier;  // at __syncthreads
  unsigned active;   // in __activemask
  word key[32];      // of a waiting lane: mask and family
  word value[32];
  word result[32];
  unsigned char source[32];
  const void* site[32];  // of a lane in __activemask: the call
};

struct Run;

struct Worker {
  const Launch* launch;
  Run* run;
  bool backward;             // the launch's
  unsigned lane, warp;       // the thread that runs
  unsigned warps;            // warps in the block
  unsigned ready_warps;      // superset of the warps with a ready lane
  unsigned live;             // threads of the block that have not exited
  unsigned arrived, truths;  // at the barrier; of them with a nonzero predicate
  word barrier_result;
  unsigned yields;      // in this block
  unsigned fresh_slot;  // the stack of a fiber that starts
  int outcome;
  Line message;
  char* shared[2];
  Stacks stacks;
  Context home;
  uint3 index[MAX_THREADS];
  Context threads[MAX_THREADS];
  Warp warp_state[MAX_THREADS / 32];
  alignas(16) char signal_stack[64 << 10];
};

// The worker of this host thread while it runs blocks, else null.
Worker* current_worker();

// Has another host thread take the launch's blocks in ascending order, from the lowest.
void call_help(Worker& w);

// Appends "(block 3, thread 17)".
void append_place(Line& line, bool with_thread);

// Gives this host thread a stack for signal handlers, if a handler is installed.
void use_signal_stack(char* memory, size_t size);

}  // namespace emu_core
