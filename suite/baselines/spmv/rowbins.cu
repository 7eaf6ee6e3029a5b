//! op spmv
//! format csr
//! let PIECE 2048
//! derived counts int 7*ceildiv(rows,1024)
//! derived bins int 16
//! derived units int rows+nnz//1024
//! derived piece_from int nnz//1024
//! prepare classify grid=ceildiv(rows,1024) block=1024
//! prepare place grid=min(rows,1) block=1024
//! prepare list grid=ceildiv(rows,1024) block=1024
//! launch short_rows grid=(rows>0)*(ceildiv(2*rows+nnz,512)+nnz//262144+8) block=256
//! launch long_rows grid=(longest>PIECE)*(nnz//1024) block=256

// Rows are listed by length (as in ACSR: Ashari, Sedaghati, Eisenlohr, Parthasarathy and
// Sadayappan, 2014): those of up to 4 << c entries get 1 << c neighbouring threads each, all in one
// launch in which every block has one kind of rows. Rows of more than PIECE entries are cut into
// pieces with a block each, which add to y. Within a list rows keep their order.

#define CLASSES 7  // the last: pieces of long rows
#define LONG (CLASSES - 1)
#define ALL 0xffffffffu

// bins[c]: first unit of class c; bins[8 + c]: first block of class c in short_rows.

__device__ int class_of(int length) {
  if (length > PIECE) return LONG;
  int c = 0;
  while (c < LONG - 1 && length > 4 << c) ++c;
  return c;
}

// Units of each class in a warp's lanes before this one (in the lane's own class) and in all.
struct Ranks {
  int own, all[CLASSES];
};

__device__ Ranks rank_units(int kind, int pieces) {
  const int lane = threadIdx.x % 32;
  Ranks ranks;
  ranks.own = 0;
#pragma unroll
  for (int c = 0; c < LONG; ++c) {
    const unsigned same = __ballot_sync(ALL, kind == c);
    ranks.all[c] = __popc(same);
    if (kind == c) ranks.own = __popc(same & ((1u << lane) - 1));
  }
  int sum = pieces;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int below = __shfl_up_sync(ALL, sum, step);
    if (lane >= step) sum += below;
  }
  ranks.all[LONG] = __shfl_sync(ALL, sum, 31);
  if (kind == LONG) ranks.own = sum - pieces;
  return ranks;
}

struct Row {
  int from, length, kind, pieces;
};

__device__ Row read_row(long long row, int rows, const int* __restrict__ row_ptr) {
  Row read = {0, 0, -1, 0};  // past the end: no class
  if (row >= rows) return read;
  read.from = row_ptr[row];
  read.length = row_ptr[row + 1] - read.from;
  read.kind = class_of(read.length);
  if (read.kind == LONG) read.pieces = (read.length - 1) / PIECE + 1;
  return read;
}

// Units of each class in each thousand rows.
extern "C" __global__ void classify(int rows, const int* __restrict__ row_ptr,
                                    int* __restrict__ counts) {
  __shared__ int totals[CLASSES];
  if (threadIdx.x < CLASSES) totals[threadIdx.x] = 0;
  __syncthreads();
  const Row row = read_row((long long)blockIdx.x * 1024 + threadIdx.x, rows, row_ptr);
  const Ranks ranks = rank_units(row.kind, row.pieces);
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (int c = 0; c < CLASSES; ++c) atomicAdd(&totals[c], ranks.all[c]);
  }
  __syncthreads();
  if (threadIdx.x < CLASSES) counts[threadIdx.x * gridDim.x + blockIdx.x] = totals[threadIdx.x];
}

// Counts become the place of the first unit, class by class.
extern "C" __global__ void place(int rows, int* __restrict__ counts, int* __restrict__ bins) {
  __shared__ int warp_sums[32];
  const int blocks = (rows - 1) / 1024 + 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int base = 0;
  for (int first = 0; first < CLASSES * blocks; first += 1024) {
    const int i = first + threadIdx.x;
    const int count = i < CLASSES * blocks ? counts[i] : 0;
    int sum = count;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int below = __shfl_up_sync(ALL, sum, step);
      if (lane >= step) sum += below;
    }
    if (lane == 31) warp_sums[warp] = sum;
    __syncthreads();
    int before = base;
    for (int w = 0; w < 32; ++w) {
      if (w < warp) before += warp_sums[w];
      base += warp_sums[w];
    }
    __syncthreads();
    if (i >= CLASSES * blocks) continue;
    counts[i] = before + sum - count;
    if (i % blocks == 0) bins[i / blocks] = before + sum - count;
  }
  if (threadIdx.x == 0) bins[CLASSES] = base;
  __syncthreads();
  if (threadIdx.x > 0) return;
  int block = 0;
  for (int c = 0; c < CLASSES; ++c) {
    const long long units = bins[c + 1] - bins[c], lanes = c < LONG ? 1 << c : 1;
    bins[8 + c] = block;
    block += (int)((units * lanes + 255) / 256);
  }
  bins[8 + CLASSES] = block;
}

extern "C" __global__ void list(int rows, const int* __restrict__ row_ptr,
                                const int* __restrict__ counts, const int* __restrict__ bins,
                                int* __restrict__ units, int* __restrict__ piece_from) {
  __shared__ int totals[32][CLASSES];
  const int warp = threadIdx.x / 32;
  const long long at = (long long)blockIdx.x * 1024 + threadIdx.x;
  const Row row = read_row(at, rows, row_ptr);
  const Ranks ranks = rank_units(row.kind, row.pieces);
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (int c = 0; c < CLASSES; ++c) totals[warp][c] = ranks.all[c];
  }
  __syncthreads();
  if (row.kind < 0) return;
  int to = counts[row.kind * gridDim.x + blockIdx.x] + ranks.own;
  for (int w = 0; w < warp; ++w) to += totals[w][row.kind];
  if (row.kind < LONG) {
    units[to] = (int)at;
    return;
  }
  for (int i = 0; i < row.pieces; ++i) {
    units[to + i] = (int)at;
    piece_from[to + i - bins[LONG]] = row.from + i * PIECE;
  }
}

template <int LANES>
__device__ void add_row(int unit, int end, const int* __restrict__ units,
                        const int* __restrict__ row_ptr, const int* __restrict__ col_idx,
                        const real* __restrict__ vals, const real* __restrict__ x,
                        real* __restrict__ y) {
  const int lane = threadIdx.x % LANES;
  int row = 0, from = 0, to = 0;
  if (unit < end) row = units[unit], from = row_ptr[row], to = row_ptr[row + 1];
  real sum = 0;
#pragma unroll 4
  for (int k = from + lane; k < to; k += LANES) sum += vals[k] * x[col_idx[k]];
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_down_sync(ALL, sum, step);
  if (lane == 0 && unit < end) y[row] = sum;
}

extern "C" __global__ void __launch_bounds__(256)
    short_rows(const int* __restrict__ bins, const int* __restrict__ units,
               const int* __restrict__ piece_from, const int* __restrict__ row_ptr,
               const int* __restrict__ col_idx, const real* __restrict__ vals,
               const real* __restrict__ x, real* __restrict__ y) {
  const int block = blockIdx.x;
  if (block >= bins[8 + CLASSES]) return;
  int kind = 0;
  while (kind < LONG && block >= bins[8 + kind + 1]) ++kind;
  const int lanes = kind < LONG ? 1 << kind : 1;
  const int unit = bins[kind] + ((block - bins[8 + kind]) * 256 + (int)threadIdx.x) / lanes;
  const int end = bins[kind + 1];
  switch (kind) {
    case 0:
      return add_row<1>(unit, end, units, row_ptr, col_idx, vals, x, y);
    case 1:
      return add_row<2>(unit, end, units, row_ptr, col_idx, vals, x, y);
    case 2:
      return add_row<4>(unit, end, units, row_ptr, col_idx, vals, x, y);
    case 3:
      return add_row<8>(unit, end, units, row_ptr, col_idx, vals, x, y);
    case 4:
      return add_row<16>(unit, end, units, row_ptr, col_idx, vals, x, y);
    case 5:
      return add_row<32>(unit, end, units, row_ptr, col_idx, vals, x, y);
  }
  // The first piece of a long row clears what all its pieces add to.
  if (unit < end && piece_from[unit - bins[LONG]] == row_ptr[units[unit]]) y[units[unit]] = 0;
}

extern "C" __global__ void __launch_bounds__(256)
    long_rows(const int* __restrict__ bins, const int* __restrict__ units,
              const int* __restrict__ piece_from, const int* __restrict__ row_ptr,
              const int* __restrict__ col_idx, const real* __restrict__ vals,
              const real* __restrict__ x, real* __restrict__ y) {
  __shared__ real warp_sums[8];
  const int unit = bins[LONG] + blockIdx.x;
  if (unit >= bins[CLASSES]) return;
  const int row = units[unit], from = piece_from[blockIdx.x];
  const int length = min(PIECE, row_ptr[row + 1] - from);
  real sum = 0;
#pragma unroll 8
  for (int k = threadIdx.x; k < length; k += 256) {
    sum += __ldcs(vals + from + k) * x[__ldcs(col_idx + from + k)];
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(ALL, sum, step);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  sum = 0;
  for (int warp = 0; warp < 8; ++warp) sum += warp_sums[warp];
  atomicAdd(y + row, sum);
}
