// Every warp collective once; out holds one row of 32 per question.
#define FULL 0xffffffffu

extern "C" __global__ void shuffles(int* out, double* wide, long long* big) {
  int lane = threadIdx.x;
  int v = lane * 10;
  out[0 * 32 + lane] = __shfl_sync(FULL, v, 5);
  out[1 * 32 + lane] = __shfl_sync(FULL, v, 3, 8);
  out[2 * 32 + lane] = __shfl_up_sync(FULL, v, 2, 16);
  out[3 * 32 + lane] = __shfl_down_sync(FULL, v, 3, 8);
  out[4 * 32 + lane] = __shfl_xor_sync(FULL, v, 1);
  out[5 * 32 + lane] = __shfl_xor_sync(FULL, v, 12, 8);
  out[6 * 32 + lane] = __shfl_sync(FULL, v, 37);
  out[7 * 32 + lane] = (int)__shfl_sync(FULL, (unsigned)v, lane ^ 31);
  wide[lane] = __shfl_down_sync(FULL, lane + 0.5, 1);
  big[lane] = __shfl_up_sync(FULL, (1LL << 40) + lane, 1);
}

extern "C" __global__ void votes(unsigned* out) {
  int lane = threadIdx.x, all;
  out[0 * 32 + lane] = __ballot_sync(FULL, lane % 3 == 0);
  out[1 * 32 + lane] = __any_sync(FULL, lane == 7);
  out[2 * 32 + lane] = __all_sync(FULL, lane != 7);
  out[3 * 32 + lane] = __all_sync(FULL, lane < 32);
  out[4 * 32 + lane] = __match_any_sync(FULL, lane / 4);
  out[5 * 32 + lane] = __match_all_sync(FULL, 42, &all) + (unsigned)all;
  out[6 * 32 + lane] = __match_all_sync(FULL, lane, &all) + (unsigned)all;
  out[7 * 32 + lane] = __reduce_add_sync(FULL, (unsigned)lane);
  out[8 * 32 + lane] = (unsigned)__reduce_min_sync(FULL, lane - 16);
  out[9 * 32 + lane] = __reduce_max_sync(FULL, (unsigned)(lane - 16));
  out[10 * 32 + lane] = __reduce_xor_sync(FULL, 1u << lane);
}

// Halves of a warp under masks of their own, in opposite branches.
extern "C" __global__ void halves(unsigned* out) {
  unsigned lane = threadIdx.x;
  if (lane < 16)
    out[lane] = __reduce_add_sync(0x0000ffffu, lane);
  else
    out[lane] = __ballot_sync(0xffff0000u, lane & 1);
  __syncwarp();
  out[lane] += __shfl_xor_sync(FULL, out[lane], 16) & 1;
}

// Converged lanes see each other; those in the other branch, or gone, they do not see.
extern "C" __global__ void converged(unsigned* out) {
  unsigned lane = threadIdx.x;
  if (lane >= 24) return;
  if (lane % 2 == 0)
    out[lane] = __activemask();
  else
    out[lane] = __activemask();
}
