//! op spmv
//! choose TILE 73728 147456
//! format coltile TILE=TILE
//! init zero
//! launch coltile grid=min(max_shares,nnz) block=TILE//144 shared=TILE+TILE//144*33*itemsize//4

// Where columns are scattered, every entry costs a 32-byte gather of x from the L2, and that, not
// the matrix, is what takes the time. So entries are sorted by tiles of columns whose x fits into
// shared memory, where a gather costs next to nothing (column blocking: Im, Yelick and Vuduc,
// 2004; tiles in shared memory: Yang, Parthasarathy and Sadayappan, 2011). Within a tile they keep
// the order of rows; a warp takes 256 at a time and adds a sum for each run of equal rows to y.
// Entries take 8 bytes or less: 16-bit columns within the tile, and 16 bits for each run's row.

#define ALL 0xffffffffu
#define STAGE (CHUNK + CHUNK / 32)  // sums of a warp, a gap after every 32
#define AHEAD (sizeof(real) == 4)   // doubles leave no registers for the next chunk

// The matrix in tiles.
struct Stored {
  const real* vals;
  const unsigned short *cols, *heads, *rows;
  const unsigned* info;
};

// A lane's share of a chunk.
struct Share {
  uint4 values[EACH / VECTOR];
  uint4 cols;  // eight of 16 bits
  unsigned heads, info;
  unsigned row;  // of the run whose number is the lane's
};

__device__ Share load_share(const Stored& stored, int chunk, int lane) {
  const size_t slot = (size_t)chunk * CHUNK;
  Share share;
  share.info = __ldcs(stored.info + chunk);
  share.heads = __ldcs(stored.heads + (size_t)chunk * 32 + lane);
  share.cols = __ldcs((const uint4*)(stored.cols + slot) + lane);
  share.row = __ldcs(stored.rows + slot + lane);
#pragma unroll
  for (int i = 0; i < EACH / VECTOR; ++i)
    share.values[i] = __ldcs((const uint4*)(stored.vals + slot) + i * 32 + lane);
  return share;
}

__device__ int staged(int run) { return run + run / 32; }  // spreads strides over the banks

// Adds up the runs of a chunk in `stage`, one sum a run.
__device__ void sum_runs(const Share& share, int lane, const real* tile, real* stage) {
  const unsigned packed[4] = {share.cols.x, share.cols.y, share.cols.z, share.cols.w};
  const unsigned heads = share.heads & 0xff;
  const int before = share.heads >> 8;
  int run = before;
  real sum = 0, continued = 0;  // continued: what belongs to the run of the lanes before
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    if (heads >> i & 1) {
      if (run == before) {
        continued = sum;
      } else {
        stage[staged(run - 1)] = sum;
      }
      ++run;
      sum = 0;
    }
    sum += ((const real*)share.values)[i] * tile[packed[i / 2] >> i % 2 * 16 & 0xffff];
  }
  // The sum of the open run at the lane's end takes in the lanes back to where the run began.
  const unsigned begun = __ballot_sync(ALL, heads != 0) & (ALL >> (31 - lane));
  const int reach = lane - (31 - __clz(begun));
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const real below = __shfl_up_sync(ALL, sum, step);
    if (reach >= step) sum += below;
  }
  const real carry = __shfl_up_sync(ALL, sum, 1);
  if (heads != 0 && before > 0) stage[staged(before - 1)] = carry + continued;
  if (lane == 31) stage[staged(run - 1)] = sum;
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1024 / BLOCK)
    coltile(int rows, int cols, const int* __restrict__ spans, const int* __restrict__ bucket_chunk,
            const unsigned* __restrict__ chunk_info, const unsigned short* __restrict__ tile_heads,
            const unsigned short* __restrict__ tile_rows,
            const unsigned short* __restrict__ tile_cols, const real* __restrict__ tile_vals,
            const real* __restrict__ x, real* __restrict__ y) {
  extern __shared__ uint4 memory[];
  real* tile = (real*)memory;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  real* stage = tile + COLS + warp * STAGE;
  const int row_blocks = row_blocks_of(rows), tiles = tiles_of(cols);
  const Stored stored = {tile_vals, tile_cols, tile_heads, tile_rows, chunk_info};
  const int4 span = ((const int4*)spans)[blockIdx.x];
  int first = span.x, end = span.y, at = span.z;
  const int last = span.w;
  while (first < last) {
    Share next;
    if (AHEAD && first + warp < end) next = load_share(stored, first + warp, lane);
    const uint4* from = (const uint4*)(x + (size_t)at * COLS);
    const int vectors = (min(COLS, cols - at * COLS) + VECTOR - 1) / VECTOR;
    __syncthreads();
#pragma unroll 4
    for (int i = threadIdx.x; i < vectors; i += BLOCK) memory[i] = from[i];
    __syncthreads();
    for (int chunk = first + warp; chunk < end; chunk += BLOCK / 32) {
      const Share share = AHEAD ? next : load_share(stored, chunk, lane);
      if (AHEAD && chunk + BLOCK / 32 < end) next = load_share(stored, chunk + BLOCK / 32, lane);
      const unsigned short* run_rows = tile_rows + (size_t)chunk * CHUNK;
      const int first_row = (int)(share.info >> 12) * ROW_BLOCK, runs = share.info & 0xfff;
      unsigned row[EACH] = {share.row};
#pragma unroll
      for (int i = 1; i < EACH; ++i) {
        if (i * 32 + lane < runs) row[i] = __ldcs(run_rows + i * 32 + lane);
      }
      sum_runs(share, lane, tile, stage);
      __syncwarp();
#pragma unroll
      for (int i = 0; i < EACH; ++i) {
        const int run = i * 32 + lane;
        if (run < runs) atomicAdd(y + first_row + row[i], stage[staged(run)]);
      }
      __syncwarp();
    }
    first = end;
    if (first < last) {
      if (bucket_chunk[(++at + 1) * row_blocks] <= first) {  // the next tile is empty
        at += find_last(bucket_chunk + at * row_blocks, tiles - at, row_blocks, 0, first);
      }
      end = min(last, bucket_chunk[(at + 1) * row_blocks]);
    }
  }
}
