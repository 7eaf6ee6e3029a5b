//! base csr
//! param PIECE 2048
//! size max_pieces 2*nnz//PIECE
//! size bin_blocks ceildiv(2*rows+nnz,512)+max_pieces//256+8
//! derived counts int 7*ceildiv(rows,1024)
//! derived bins int 16
//! derived units int rows+max_pieces
//! derived piece_from int max_pieces
//! prepare csr_bins_count grid=ceildiv(rows,1024) block=1024
//! prepare csr_bins_place grid=min(rows,1) block=1024
//! prepare csr_bins_list grid=ceildiv(rows,1024) block=1024

// CSR and lists of its rows by length (as in ACSR: Ashari, Sedaghati, Eisenlohr, Parthasarathy and
// Sadayappan, 2014). Class c has the rows of up to 4 << c entries, for 1 << c threads each; class
// LONG has pieces of PIECE entries of longer rows. units[bins[c]] to units[bins[c + 1]] are the
// rows of class c, in order; a row of class LONG stands there once for each of its pieces, and
// piece_from[i - bins[LONG]] is the first entry of the i-th unit. With blocks of 256 threads and
// one kind of rows in each, bins[8 + c] is the first block of class c (a thread for each piece),
// bins[8 + CLASSES] the end, at most bin_blocks. At most max_pieces pieces.

constexpr int CLASSES = 7;
constexpr int LONG = CLASSES - 1;  // pieces of long rows

namespace preparing {

constexpr unsigned ALL = 0xffffffffu;

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

}  // namespace preparing

// Units of each class in each thousand rows.
extern "C" __global__ void csr_bins_count(int rows, const int* __restrict__ row_ptr,
                                          int* __restrict__ counts) {
  using namespace preparing;
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
extern "C" __global__ void csr_bins_place(int rows, int* __restrict__ counts,
                                          int* __restrict__ bins) {
  using namespace preparing;
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

extern "C" __global__ void csr_bins_list(int rows, const int* __restrict__ row_ptr,
                                         const int* __restrict__ counts,
                                         const int* __restrict__ bins, int* __restrict__ units,
                                         int* __restrict__ piece_from) {
  using namespace preparing;
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
