// One kernel launch: blocks handed out in ascending order to host threads.
//
// The host threads live as long as the launch, so that a process may fork between launches; their
// stacks and state stay. A program that waits for blocks with a lower index, or that numbers its
// blocks by an atomic counter, makes progress.
#include <pthread.h>

#include <new>

#include "memory.hpp"
#include "scheduler.hpp"

namespace emu {

bool run_block(Worker& w, unsigned long long number);
void bind_worker(Worker* w);

namespace {

constexpr unsigned MAX_WORKERS = 64;
Worker* pool[MAX_WORKERS];

struct Run {
  const Launch* launch;
  unsigned long long blocks, chunk;
  unsigned long long next = 0;
  int failed = 0;
};

struct Task {
  Run* run;
  Worker* worker;
};

void* work(void* argument) {
  const Task& task = *static_cast<Task*>(argument);
  Run& run = *task.run;
  Worker& w = *task.worker;
  w.launch = run.launch;
  bind_worker(&w);
  use_signal_stack(w.signal_stack, sizeof w.signal_stack);
  bool good = true;
  while (good && __atomic_load_n(&run.failed, __ATOMIC_RELAXED) == 0) {
    const auto first = __atomic_fetch_add(&run.next, run.chunk, __ATOMIC_RELAXED);
    if (first >= run.blocks) break;
    const auto last = first + run.chunk < run.blocks ? first + run.chunk : run.blocks;
    for (auto block = first; good && block < last; ++block) good = run_block(w, block);
  }
  if (!good) {
    __atomic_store_n(&run.failed, 1, __ATOMIC_RELAXED);
    w.stacks.reset();  // abandoned fibers gave nothing back
  }
  bind_worker(nullptr);
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
}  // namespace emu

using namespace emu;

// Runs a launch to its end and returns an Outcome; a message of one line goes to `message` unless
// DONE.
extern "C" __attribute__((visibility("default"))) int emu_launch(const Launch* launch,
                                                                 char* message, size_t capacity) {
  Run run{launch, 1ull * launch->grid[0] * launch->grid[1] * launch->grid[2], 1};
  unsigned workers = launch->workers < MAX_WORKERS ? launch->workers : MAX_WORKERS;
  if (workers > run.blocks) workers = static_cast<unsigned>(run.blocks);
  const unsigned long long share = run.blocks / (workers * 8ull);
  run.chunk = share < 1 ? 1 : share > 64 ? 64 : share;

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
  for (unsigned i = 0; i < started; ++i)
    if (pool[i]->outcome != DONE) {
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
