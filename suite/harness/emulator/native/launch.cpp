// One kernel launch: blocks handed out in ascending order to host threads, in a backward launch in
// descending order.
//
// The host threads live as long as the launch, so that a process may fork between launches; their
// stacks and state stay. A program that waits for blocks with a lower index, or that numbers its
// blocks by an atomic counter, makes progress: GPUs start blocks in ascending order, so in a
// backward launch a block that polls for long is helped by one more host thread, which ascends.
#include <pthread.h>

#include <new>

#include "memory.hpp"
#include "scheduler.hpp"

namespace emu_core {

bool run_block(Worker& w, unsigned long long number);
void bind_worker(Worker* w);

namespace {

constexpr unsigned MAX_WORKERS = 64;

Worker* pool[MAX_WORKERS + 1];  // the last one helps

struct Claim {
  unsigned long long first, last;  // blocks, the last one excluded
};

}  // namespace

struct Run {
  const Launch* launch;
  unsigned long long chunk;
  unsigned long long low, high;  // blocks that nobody has taken
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  int failed = 0;
  int helped = 0;
  pthread_t helper;

  // Takes blocks from the upper or the lower end; empty when there are none left.
  Claim claim(bool upper, unsigned long long most) {
    pthread_mutex_lock(&lock);
    const auto count = most < high - low ? most : high - low;
    const Claim claim = upper ? Claim{high - count, high} : Claim{low, low + count};
    (upper ? high : low) = upper ? claim.first : claim.last;
    pthread_mutex_unlock(&lock);
    return claim;
  }
};

namespace {

struct Task {
  Run* run;
  Worker* worker;
};

void work_on(Run& run, Worker& w, bool backward, unsigned long long chunk) {
  w.launch = run.launch;
  w.run = &run;
  bind_worker(&w);
  use_signal_stack(w.signal_stack, sizeof w.signal_stack);
  bool good = true;
  while (good && __atomic_load_n(&run.failed, __ATOMIC_RELAXED) == 0) {
    const Claim claim = run.claim(backward, chunk);
    if (claim.first == claim.last) break;
    for (auto i = claim.first; good && i < claim.last; ++i)
      good = run_block(w, backward ? claim.last - 1 - (i - claim.first) : i);
  }
  if (!good) {
    __atomic_store_n(&run.failed, 1, __ATOMIC_RELAXED);
    w.stacks.reset();  // abandoned fibers gave nothing back
  }
  bind_worker(nullptr);
}

void* work(void* argument) {
  const Task& task = *static_cast<Task*>(argument);
  work_on(*task.run, *task.worker, task.run->launch->backward != 0, task.run->chunk);
  return nullptr;
}

void* help(void* run) {
  work_on(*static_cast<Run*>(run), *pool[MAX_WORKERS], false, 1);
  return nullptr;
}

bool provide(Worker*& w) {
  if (w == nullptr) {
    void* at = mmap(nullptr, sizeof(Worker), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return false;
    w = new (at) Worker();
  }
  w->outcome = DONE;
  return w->stacks.ready() || w->stacks.reserve();
}

}  // namespace

void call_help(Worker& w) {
  Run& run = *w.run;
  if (__atomic_exchange_n(&run.helped, 1, __ATOMIC_RELAXED) != 0) return;
  const bool can = provide(pool[MAX_WORKERS]);
  if (!can || pthread_create(&run.helper, nullptr, help, &run) != 0) run.helped = 2;
}

}  // namespace emu_core

using namespace emu_core;

// Runs a launch to its end and returns an Outcome; a message of one line goes to `message` unless
// DONE.
extern "C" __attribute__((visibility("default"))) int emu_launch(const Launch* launch,
                                                                 char* message, size_t capacity) {
  const auto blocks = 1ull * launch->grid[0] * launch->grid[1] * launch->grid[2];
  unsigned workers = launch->workers < MAX_WORKERS ? launch->workers : MAX_WORKERS;
  if (workers > blocks) workers = static_cast<unsigned>(blocks);
  const auto share = blocks / (workers * 8ull);
  // Backward, a block that was taken and not begun would be out of the helper's reach.
  const bool single = share < 1 || launch->backward != 0;
  Run run{launch, single ? 1 : share > 64 ? 64 : share, 0, blocks};

  Task tasks[MAX_WORKERS];
  pthread_t threads[MAX_WORKERS];
  unsigned started = 0;
  for (unsigned i = 0; i < workers; ++i) {
    if (!provide(pool[i])) break;
    tasks[i] = {&run, pool[i]};
    // The calling thread is the first worker.
    if (i > 0 && pthread_create(&threads[i], nullptr, work, &tasks[i]) != 0) break;
    ++started;
  }
  if (started > 0) work(&tasks[0]);
  for (unsigned i = 1; i < started; ++i) pthread_join(threads[i], nullptr);

  if (started == 0) {
    (Line() << "no memory for the state of a host thread").copy_to(message, capacity);
    return NO_MEMORY;
  }
  if (run.helped == 1) pthread_join(run.helper, nullptr);
  for (unsigned i = 0; i <= MAX_WORKERS; ++i) {
    if (i >= started && (i < MAX_WORKERS || run.helped != 1)) continue;
    if (pool[i]->outcome == DONE) continue;
    pool[i]->message.copy_to(message, capacity);
    return pool[i]->outcome;
  }
  Line stray;
  stray << "kernel " << launch->name << " ";
  if (find_stray_write(stray)) {
    stray.copy_to(message, capacity);
    return TRAP;
  }
  return DONE;
}
