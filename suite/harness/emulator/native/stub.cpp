// Stands for the C library when programs are linked, so that they find only what a compiler itself
// calls. When they are loaded, the real one takes its place.
#define EMU_STUB(name) \
  extern "C" __attribute__((visibility("default"))) void name() {}

EMU_STUB(memcpy)
EMU_STUB(memmove)
EMU_STUB(memset)
EMU_STUB(memcmp)
EMU_STUB(__tls_get_addr)
