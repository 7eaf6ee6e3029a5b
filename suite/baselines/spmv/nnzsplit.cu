//! op spmv
//! format coo_runs
//! init zero
//! launch nnzsplit grid=ceildiv(nnz,1024*ROUNDS) block=256

// A warp takes 128 * ROUNDS entries, wherever rows begin and end, 128 at a time. Instead of row
// indices it reads a bit for each entry that begins a row and one index a row (the flags of CSR5:
// Liu and Vinter, 2015), so 8 bytes an entry and not 12. A segmented sum leaves one sum a row in
// shared memory, from where rows go to y side by side; only a warp's first and last row need
// atomics, hence few on a dense row.

#define WARPS 8
#define ROUND 128
#define STAGE 132
#define ALL 0xffffffffu

// Bits of the lanes below.
__device__ unsigned below() { return (1u << (threadIdx.x % 32)) - 1; }

// A lane's four entries of a round.
struct Share {
  int col[4];
  real value[4];
  unsigned heads;
};

__device__ Share load_share(long long round, int nnz, const unsigned char* __restrict__ heads,
                            const int* __restrict__ col_idx, const real* __restrict__ vals) {
  const int lane = threadIdx.x % 32;
  const long long first = round * ROUND + lane * 4;
  Share share;
  share.heads = __ldcs(heads + round * 32 + lane);
  if (first + 4 <= nnz) {
    const int4 c = __ldcs((const int4*)(col_idx + first));
    const real4 v = *(const real4*)(vals + first);
    share.col[0] = c.x, share.col[1] = c.y, share.col[2] = c.z, share.col[3] = c.w;
    share.value[0] = v.x, share.value[1] = v.y, share.value[2] = v.z, share.value[3] = v.w;
    return share;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    share.col[i] = first + i < nnz ? col_idx[first + i] : 0;
    share.value[i] = first + i < nnz ? vals[first + i] : 0;
  }
  return share;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    nnzsplit(int nnz, const unsigned char* __restrict__ heads, const int* __restrict__ run_rows,
             const int* __restrict__ col_idx, const real* __restrict__ vals,
             const real* __restrict__ x, real* __restrict__ y) {
  __shared__ real stages[WARPS * STAGE];
  const int lane = threadIdx.x % 32;
  real* stage = stages + threadIdx.x / 32 * STAGE;
  const long long rounds = ((long long)nnz + ROUND - 1) / ROUND;
  long long round = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32 * ROUNDS;
  const long long end = min(rounds, round + ROUNDS);
  if (round >= end) return;
  real open = 0;      // sum of the run that goes on
  int open_row = 0;   // its row
  int finished = -1;  // runs that have ended; before the first entry there is none to end
  Share next = load_share(round, nnz, heads, col_idx, vals);
  for (; round < end; ++round) {
    const Share share = next;
    real product[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) product[i] = share.value[i] * x[share.col[i]];
    if (round + 1 < end) next = load_share(round + 1, nnz, heads, col_idx, vals);
    const int2 counted = count_heads(share.heads);
    const int before = counted.x, runs = counted.y;
    int row[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i * 32 + lane < runs) row[i] = __ldcs(run_rows + round * ROUND + i * 32 + lane);
    }
    // stage[j] becomes the sum of the run that ends where the j-th begins.
    int run = before;
    real sum = 0, continued = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (share.heads >> i & 1) {
        if (run == before) {
          continued = sum;
        } else {
          stage[run] = sum;
        }
        ++run;
        sum = 0;
      }
      sum += product[i];
    }
    if (lane == 0 && share.heads == 0) sum += open;
    // A lane's open sum takes in the lanes back to where the run began.
    const unsigned begun = __ballot_sync(ALL, share.heads != 0);
    const unsigned begun_here = begun & (below() << 1 | 1);
    const int reach = begun_here ? lane - (31 - __clz(begun_here)) : lane;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const real from = __shfl_up_sync(ALL, sum, step);
      if (reach >= step) sum += from;
    }
    const real carry = __shfl_up_sync(ALL, sum, 1);
    if (share.heads != 0) stage[before] = continued + (lane > 0 ? carry : open);
    open = __shfl_sync(ALL, sum, 31);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // The run that ends at this lane's head began at the head before.
      const int above = __shfl_up_sync(ALL, row[i], 1);
      const int from = lane > 0 ? above : open_row;
      const int nth = finished + i * 32 + lane;
      if (i * 32 + lane < runs && nth >= 0) {
        if (nth == 0) {
          atomicAdd(y + from, stage[i * 32 + lane]);
        } else {
          y[from] = stage[i * 32 + lane];
        }
      }
      if (i * 32 < runs) open_row = __shfl_sync(ALL, row[i], min(runs - i * 32, 32) - 1);
    }
    finished += runs;
    __syncwarp();
  }
  if (lane == 0) atomicAdd(y + open_row, open);
}
