// Threads of a block as fibers of one host thread.
//
// A fiber takes up one thread after another on the same stack, for as long as they do not wait:
// such a thread costs a call. A thread that waits keeps its stack and switches straight to the next
// one that can run. Which can is held in bit masks, one per warp and one over the warps.
#include "scheduler.hpp"

#include <time.h>

#include "collectives.hpp"

#define HOT __attribute__((visibility("default"), tls_model("initial-exec")))
extern "C" {
__thread uint3 threadIdx HOT;
__thread uint3 blockIdx HOT;
__thread uint3 blockDim HOT;
__thread uint3 gridDim HOT;
__thread unsigned emu_polls HOT;
__thread unsigned emu_racing HOT;
}

namespace emu_core {

static __thread Worker* self __attribute__((tls_model("initial-exec")));

Worker* current_worker() { return self; }

namespace {

const char* const FAMILY[FAMILIES] = {"__syncwarp",  "a shuffle",   "a vote",
                                      "__match_any", "__match_all", "a warp reduction"};

constexpr unsigned PATIENCE = 64;  // yields of a block until it may be waiting for another block

word key_of(unsigned family, unsigned mask) { return word{mask} << 8 | family; }

[[noreturn]] void leave(Worker& w) {
  Context unused;
  swap(unused, w.home);
  __builtin_unreachable();
}

[[noreturn]] void abandon(Worker& w, int outcome) {
  w.outcome = outcome;
  leave(w);
}

[[noreturn]] void deadlock(Worker& w) {
  unsigned at_barrier = 0, in_collective = 0;
  const Warp* stuck = nullptr;
  for (unsigned i = 0; i < w.warps; ++i) {
    const Warp& p = w.warp_state[i];
    at_barrier += static_cast<unsigned>(__builtin_popcount(p.barrier));
    in_collective += static_cast<unsigned>(__builtin_popcount(p.waiting));
    if (stuck == nullptr && p.waiting != 0) stuck = &p;
  }
  Line& line = w.message;
  line << "deadlock: kernel " << w.launch->name << " ";
  append_place(line, false);
  line << ": ";
  if (at_barrier != 0) line << at_barrier << " threads wait at __syncthreads";
  if (stuck != nullptr) {
    const word key = stuck->key[__builtin_ctz(stuck->waiting)];
    line << (at_barrier != 0 ? " and " : "") << in_collective
         << " in warp collectives, the first in " << FAMILY[key & 0xFF] << " with mask ";
    line.hex(key >> 8);
  }
  line << " that the rest never reaches";
  abandon(w, DEADLOCK);
}

// Which of `set`, not empty, goes first: the lowest, or in a backward launch the highest.
unsigned first_of(const Worker& w, unsigned set) {
  return static_cast<unsigned>(w.backward ? 31 - __builtin_clz(set) : __builtin_ctz(set));
}

// Those of `set` that come after `number` in that order.
unsigned after(const Worker& w, unsigned set, unsigned number) {
  return w.backward ? set & ((1u << number) - 1) : set & ~1u << number;
}

void release(Worker& w, Warp& p, unsigned lanes) {
  p.ready |= lanes;
  w.ready_warps |= 1u << (&p - w.warp_state);
}

// Those whom a collective of `mask` waits for have not all come.
bool incomplete(const Warp& p, unsigned mask) { return (mask & p.live & ~p.waiting) != 0; }

// Completes the collective that `lane` waits in, if all its live lanes have come.
bool try_complete(Worker& w, Warp& p, unsigned lane) {
  const word key = p.key[lane];
  const unsigned lanes = static_cast<unsigned>(key >> 8) & p.live;
  if (incomplete(p, lanes)) return false;
  bool same = true;
  each(lanes, [&](unsigned l) { same &= p.key[l] == key; });
  if (!same) return false;
  complete(p, static_cast<unsigned>(key & 0xFF), lanes);
  p.waiting &= ~lanes;
  release(w, p, lanes);
  return true;
}

void open_barrier(Worker& w) {
  w.barrier_result = word{w.arrived} << 32 | w.truths;
  w.arrived = w.truths = 0;
  for (unsigned i = 0; i < w.warps; ++i) {
    Warp& p = w.warp_state[i];
    release(w, p, p.barrier);
    p.barrier = 0;
  }
}

// Lanes that stand at the same __activemask while no other lane of the warp can run go on together,
// as converged lanes do on a GPU.
void converge(Worker& w, Warp& p) {
  const void* site = p.site[first_of(w, p.active)];
  unsigned together = 0;
  each(p.active, [&](unsigned l) { together |= unsigned{p.site[l] == site} << l; });
  each(together, [&](unsigned l) { p.result[l] = together; });
  p.active &= ~together;
  release(w, p, together);
}

// Chooses the thread to run next; false when none can.
bool pick(Worker& w) {
  for (;;) {
    Warp& p = w.warp_state[w.warp];
    if (p.ready != 0) {
      w.lane = first_of(w, p.ready);
      return true;
    }
    if (p.active != 0) {
      converge(w, p);
      continue;
    }
    w.ready_warps &= ~(1u << w.warp);
    if (w.ready_warps == 0) return false;
    w.warp = first_of(w, w.ready_warps);
  }
}

void retire(Worker& w) {
  Warp& p = w.warp_state[w.warp];
  const unsigned bit = 1u << w.lane;
  p.live &= ~bit;
  p.ready &= ~bit;
  --w.live;
  if (__builtin_expect(p.waiting != 0, 0))
    for (unsigned tried = p.waiting; tried != 0; tried &= tried - 1) {
      const auto lane = static_cast<unsigned>(__builtin_ctz(tried));
      if ((p.waiting >> lane & 1) != 0) try_complete(w, p, lane);
    }
  if (w.arrived != 0 && w.arrived == w.live) open_barrier(w);
}

bool chosen_started(const Worker& w) { return (w.warp_state[w.warp].started >> w.lane & 1) != 0; }

void fiber() {
  Worker& w = *self;
  const unsigned slot = w.fresh_slot;
  for (;;) {
    w.warp_state[w.warp].started |= 1u << w.lane;
    threadIdx = w.index[w.warp * 32 + w.lane];
    w.launch->kernel(w.launch->arguments);
    retire(w);
    if (!pick(w)) {
      if (w.live != 0) deadlock(w);
      w.stacks.give(slot);
      leave(w);
    }
    if (!chosen_started(w)) continue;
    w.stacks.give(slot);
    threadIdx = w.index[w.warp * 32 + w.lane];
    Context unused;
    swap(unused, w.threads[w.warp * 32 + w.lane]);
  }
}

void start_fiber(Worker& w, Context& from) {
  Context fresh;
  if (!w.stacks.take(w.fresh_slot)) {
    w.message << "no memory for the stacks of the threads of a block";
    if (&from == &w.home) {
      w.outcome = NO_MEMORY;
      return;
    }
    abandon(w, NO_MEMORY);
  }
  fresh.prepare(w.stacks.bottom(w.fresh_slot), w.stacks.top(w.fresh_slot), fiber);
  swap(from, fresh);
}

// Goes on with the chosen thread; returns when the calling thread, `caller`, is chosen again.
void resume_chosen(Worker& w, unsigned caller) {
  const unsigned next = w.warp * 32 + w.lane;
  if (next == caller) return;
  if (!chosen_started(w)) return start_fiber(w, w.threads[caller]);
  threadIdx = w.index[next];
  swap(w.threads[caller], w.threads[next]);
}

// The calling thread waits; something else has said for what.
inline void suspend(Worker& w) {
  const unsigned caller = w.warp * 32 + w.lane;
  Warp& p = w.warp_state[w.warp];
  const unsigned ready = p.ready &= ~(1u << w.lane);
  if (__builtin_expect((ready & p.started) == ready && ready != 0, 1)) {  // mostly
    w.lane = first_of(w, ready);
    const unsigned next = w.warp * 32 + w.lane;
    threadIdx = w.index[next];
    return swap(w.threads[caller], w.threads[next]);
  }
  if (!pick(w)) deadlock(w);
  resume_chosen(w, caller);
}

}  // namespace

// Runs block `number`; false when it failed and the worker's outcome says how.
bool run_block(Worker& w, unsigned long long number) {
  const Launch& l = *w.launch;
  blockIdx = {static_cast<unsigned>(number % l.grid[0]),
              static_cast<unsigned>(number / l.grid[0] % l.grid[1]),
              static_cast<unsigned>(number / l.grid[0] / l.grid[1])};
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  w.warps = (threads + 31) / 32;
  for (unsigned i = 0; i < w.warps; ++i) {
    Warp& p = w.warp_state[i];
    p.live = p.ready = threads - i * 32 < 32 ? (1u << (threads - i * 32)) - 1 : ~0u;
    p.started = p.waiting = p.barrier = p.active = 0;
  }
  w.ready_warps = w.warps < 32 ? (1u << w.warps) - 1 : ~0u;
  w.live = threads;
  w.arrived = w.truths = w.yields = 0;
  w.warp = first_of(w, w.ready_warps);
  w.lane = first_of(w, w.warp_state[w.warp].ready);
  // What a program reads of shared memory before it writes it is NaN, never the last block's.
  memset(w.shared[0], 0xFF, static_cast<size_t>(w.shared[1] - w.shared[0]) + l.shared_bytes);
  start_fiber(w, w.home);
  return w.outcome == DONE;
}

void bind_worker(Worker* w) {
  self = w;
  emu_racing = w != nullptr && w->launch->backward != 0;
  if (w == nullptr) return;
  w->backward = emu_racing != 0;
  const unsigned* block = w->launch->block;
  blockDim = {block[0], block[1], block[2]};
  gridDim = {w->launch->grid[0], w->launch->grid[1], w->launch->grid[2]};
  for (unsigned t = 0; t < block[0] * block[1] * block[2]; ++t)
    w->index[t] = {t % block[0], t / block[0] % block[1], t / block[0] / block[1]};
  w->launch->shared(w->shared);
  w->outcome = DONE;
  w->message = Line();
}

void append_place(Line& line, bool with_thread) {
  line << "(block " << blockIdx.x;
  if (gridDim.y * gridDim.z > 1) line << "," << blockIdx.y << "," << blockIdx.z;
  if (with_thread) {
    line << ", thread " << threadIdx.x;
    if (blockDim.y * blockDim.z > 1) line << "," << threadIdx.y << "," << threadIdx.z;
  }
  line << ")";
}

}  // namespace emu_core

using namespace emu_core;

word emu_collective(unsigned family, unsigned mask, word value, unsigned source) {
  Worker& w = *self;
  Warp& p = w.warp_state[w.warp];
  const unsigned lane = w.lane;
  if (__builtin_expect((mask >> lane & 1) == 0, 0)) {
    w.message << "deadlock: kernel " << w.launch->name << " ";
    append_place(w.message, true);
    w.message << ": " << FAMILY[family] << " with mask ";
    w.message.hex(mask) << " that does not name the calling lane";
    abandon(w, DEADLOCK);
  }
  p.key[lane] = key_of(family, mask);
  p.value[lane] = value;
  p.source[lane] = static_cast<unsigned char>(source);
  p.waiting |= 1u << lane;
  if (incomplete(p, mask) || !try_complete(w, p, lane)) suspend(w);
  return p.result[lane];
}

word emu_barrier(unsigned predicate) {
  Worker& w = *self;
  w.arrived += 1;
  w.truths += predicate != 0;
  w.warp_state[w.warp].barrier |= 1u << w.lane;
  if (w.arrived == w.live)
    open_barrier(w);
  else
    suspend(w);
  return w.barrier_result;
}

__attribute__((noinline)) unsigned emu_activemask() {
  Worker& w = *self;
  Warp& p = w.warp_state[w.warp];
  const unsigned lane = w.lane;
  if (p.live == 1u << lane) return p.live;
  p.site[lane] = __builtin_return_address(0);
  p.active |= 1u << lane;
  suspend(w);
  return static_cast<unsigned>(p.result[lane]);
}

// Lets the other threads of the block go first: the next ready one, in a circle.
void emu_yield() {
  Worker& w = *self;
  Warp& p = w.warp_state[w.warp];
  const unsigned caller = w.warp * 32 + w.lane;
  if (++w.yields == PATIENCE && w.backward) call_help(w);
  if (p.active != 0) converge(w, p);
  for (unsigned step = 1; step < w.warps * 32; ++step) {
    const unsigned next = (caller + step) % (w.warps * 32);
    if ((w.warp_state[next / 32].ready >> next % 32 & 1) == 0) continue;
    w.warp = next / 32;
    w.lane = next % 32;
    return resume_chosen(w, caller);
  }
}

// Lets the next ready thread go first, in a circle over the block; the caller stays ready. Lanes in
// __activemask are left to wait for those that have not come so far.
void emu_race(const void* at) {
  Worker& w = *self;
  if (w.stacks.hold(static_cast<const char*>(at))) return;
  const unsigned caller = w.warp * 32 + w.lane;
  if (const unsigned lanes = after(w, w.warp_state[w.warp].ready, w.lane)) {
    w.lane = first_of(w, lanes);
    return resume_chosen(w, caller);
  }
  for (unsigned warps = after(w, w.ready_warps, w.warp);;) {
    if (warps == 0) warps = w.ready_warps;  // around; the caller's own is there
    w.warp = first_of(w, warps);
    const Warp& p = w.warp_state[w.warp];
    if (p.ready != 0) break;
    warps &= ~(1u << w.warp);
    if (p.active == 0) w.ready_warps &= ~(1u << w.warp);
  }
  w.lane = first_of(w, w.warp_state[w.warp].ready);
  resume_chosen(w, caller);
}

word emu_clock() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<word>(now.tv_sec) * 1000000000 + static_cast<word>(now.tv_nsec);
}

void emu_trap(const char* what) {
  Worker& w = *self;
  w.message << "kernel " << w.launch->name << ": " << what << " ";
  append_place(w.message, true);
  abandon(w, TRAP);
}
