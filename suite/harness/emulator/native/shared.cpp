// Shared memory is thread-local: a block runs on one host thread, and a program's only thread-local
// variables are its __shared__ ones. The linker lays them out between these two, in the order of
// its arguments: START, the program, and this file again for the dynamic part.
#ifdef EMU_SHARED_START
extern __thread char emu_shared_start[128];
__thread char emu_shared_start[128] __attribute__((aligned(128)));
#else
extern __thread char emu_shared_start[128];
extern __thread char emu_shared_dynamic[EMU_SHARED_BYTES];
__thread char emu_shared_dynamic[EMU_SHARED_BYTES] __attribute__((aligned(128)));

extern "C" __attribute__((visibility("default"))) void emu_shared(char** bounds) {
  bounds[0] = emu_shared_start;
  bounds[1] = emu_shared_dynamic;
}
#endif
