//! op spmv
//! format coo
//! choose TILE 73728 147456
//! let CHUNK 256
//! require rows*ceildiv(cols*itemsize,TILE)<=8*nnz+65536
//! require nnz+CHUNK*ceildiv(cols*itemsize,TILE)*ceildiv(rows,16384)<2000000000
//! derived counts int rows*ceildiv(cols*itemsize,TILE) zero
//! derived firsts int rows*ceildiv(cols*itemsize,TILE)
//! derived bucket_entries int ceildiv(cols*itemsize,TILE)*ceildiv(rows,16384)
//! derived bucket_chunk int ceildiv(cols*itemsize,TILE)*ceildiv(rows,16384)+1
//! derived spans int 4*(sms*147456//TILE)
//! derived chunk_info unsigned nnz//CHUNK+ceildiv(cols*itemsize,TILE)*ceildiv(rows,16384)
//! derived tile_heads ushort 32*(nnz//CHUNK+ceildiv(cols*itemsize,TILE)*ceildiv(rows,16384))
//! derived tile_rows ushort CHUNK*(nnz//CHUNK+ceildiv(cols*itemsize,TILE)*ceildiv(rows,16384))
//! derived tile_cols ushort CHUNK*(nnz//CHUNK+ceildiv(cols*itemsize,TILE)*ceildiv(rows,16384))
//! derived tile_vals real CHUNK*(nnz//CHUNK+ceildiv(cols*itemsize,TILE)*ceildiv(rows,16384))
//! prepare count grid=ceildiv(nnz,256) block=256
//! prepare sum_buckets grid=ceildiv(cols*itemsize,TILE)*ceildiv(rows,16384) block=1024
//! prepare place_buckets grid=min(ceildiv(cols*itemsize,TILE)*ceildiv(rows,16384),1) block=1024
//! prepare divide grid=min(nnz,1) block=1024
//! prepare place_rows grid=ceildiv(cols*itemsize,TILE)*ceildiv(rows,16384) block=1024
//! prepare scatter grid=ceildiv(nnz,256) block=256
//! prepare mark grid=ceildiv(nnz,2048)+ceildiv(cols*itemsize,TILE)*ceildiv(rows,16384) block=256
//! init zero
//! launch coltile grid=min(sms*147456//TILE,nnz) block=TILE//144 shared=TILE+TILE//144*33*itemsize//4

// Where columns are scattered, every entry costs a 32-byte gather of x from the L2, and that, not
// the matrix, is what takes the time. So entries are sorted by tiles of columns whose x fits into
// shared memory, where a gather costs next to nothing (column blocking: Im, Yelick and Vuduc,
// 2004; tiles in shared memory: Yang, Parthasarathy and Sadayappan, 2011). Within a tile they keep
// the order of rows; a warp takes 256 at a time and adds a sum for each run of equal rows to y.
// Entries take 8 bytes or less: 16-bit columns within the tile, and 16 bits for each run's row.

#define ALL 0xffffffffu
#define BLOCK (TILE / 144)               // threads: 1024 a multiprocessor
#define COLS (TILE / (int)sizeof(real))  // columns of a tile
#define EACH (CHUNK / 32)                // entries of a chunk that a lane takes, neighbours
#define STAGE (CHUNK + CHUNK / 32)       // sums of a warp, a gap after every 32
#define ROW_BLOCK 16384                  // rows of a bucket
#define TILE_COST (TILE / (8 * CHUNK))   // chunks that are read while a tile is loaded
#define AHEAD (sizeof(real) == 4)        // doubles leave no registers for the next chunk
#define VECTOR (16 / (int)sizeof(real))

// Buckets are ordered by tile, then row block, and begin with a chunk of their own.
__device__ int row_blocks_of(int rows) { return rows / ROW_BLOCK + (rows % ROW_BLOCK > 0); }
__device__ int tiles_of(int cols) { return cols / COLS + (cols % COLS > 0); }

// Where the value of entry k is kept, so that all lanes of a warp load 16 bytes side by side.
__device__ int value_slot(int k) {
  const int lane = k % CHUNK / EACH, nth = k % EACH;
  return k - k % CHUNK + nth / VECTOR * (32 * VECTOR) + lane * VECTOR + nth % VECTOR;
}

// The last i with from[i * stride] + i * cost <= key; the first is, the one at `count` is not.
__device__ int find_last(const int* from, int count, int stride, int cost, long long key) {
  int low = 0, high = count;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (from[(size_t)middle * stride] + (long long)middle * cost > key ? high : low) = middle;
  }
  return low;
}

// Sum of the values of the lanes up to this one.
__device__ int warp_scan(int value) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int below = __shfl_up_sync(ALL, value, step);
    if (threadIdx.x % 32 >= step) value += below;
  }
  return value;
}

// Sum of the values of all threads before this one, and of all 1024 threads.
__device__ int2 block_scan(int value, int* warp_sums) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int sum = warp_scan(value);
  __syncthreads();  // the sums of an earlier call have been read
  if (lane == 31) warp_sums[warp] = sum;
  __syncthreads();
  const int warps = warp_scan(warp_sums[lane]);
  const int before = warp > 0 ? __shfl_sync(ALL, warps, warp - 1) : 0;
  return make_int2(before + sum - value, __shfl_sync(ALL, warps, 31));
}

// Entries of each row in each tile, and the first of them: in a row they are neighbours.
extern "C" __global__ void count(int rows, int nnz, const int* __restrict__ row_idx,
                                 const int* __restrict__ col_idx, int* __restrict__ counts,
                                 int* __restrict__ firsts) {
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= nnz) return;
  const int row = row_idx[k], tile = col_idx[k] / COLS;
  const size_t cell = (size_t)tile * rows + row;
  const bool begins = k == 0 || row_idx[k - 1] != row || col_idx[k - 1] / COLS != tile;
  const bool ends = k + 1 == nnz || row_idx[k + 1] != row || col_idx[k + 1] / COLS != tile;
  if (begins) firsts[cell] = (int)k;
  if (begins || ends) atomicAdd(&counts[cell], (ends ? (int)k + 1 : 0) - (begins ? (int)k : 0));
}

// A block per bucket.
extern "C" __global__ void sum_buckets(int rows, const int* __restrict__ counts,
                                       int* __restrict__ bucket_entries) {
  __shared__ int warp_sums[32];
  const int row_blocks = row_blocks_of(rows);
  const int* count = counts + (size_t)(blockIdx.x / row_blocks) * rows;
  const long long begin = (long long)(blockIdx.x % row_blocks) * ROW_BLOCK;
  const long long end = min((long long)rows, begin + ROW_BLOCK);
  int sum = 0;
  for (long long row = begin + threadIdx.x; row < end; row += 1024) sum += count[row];
  const int all = block_scan(sum, warp_sums).y;
  if (threadIdx.x == 0) bucket_entries[blockIdx.x] = all;
}

// First chunk of each bucket.
extern "C" __global__ void place_buckets(int rows, int cols, const int* __restrict__ bucket_entries,
                                         int* __restrict__ bucket_chunk) {
  __shared__ int warp_sums[32];
  const int buckets = tiles_of(cols) * row_blocks_of(rows);
  int base = 0;
  for (int first = 0; first < buckets; first += 1024) {
    const int bucket = first + threadIdx.x;
    const int entries = bucket < buckets ? bucket_entries[bucket] : 0;
    const int2 chunks = block_scan((entries + CHUNK - 1) / CHUNK, warp_sums);
    if (bucket < buckets) bucket_chunk[bucket] = base + chunks.x;
    base += chunks.y;
  }
  if (threadIdx.x == 0) bucket_chunk[buckets] = base;
}

// The chunk that is reached after `steps` of the way through all chunks, on which TILE_COST steps
// lie between two tiles.
__device__ int chunk_after(long long steps, const int* bucket_chunk, int tiles, int row_blocks) {
  const int at = find_last(bucket_chunk, tiles, row_blocks, TILE_COST, steps);
  return (int)min(steps - (long long)TILE_COST * at,
                  (long long)bucket_chunk[(at + 1) * row_blocks]);
}

// For each block of the multiplication its first chunk, the end of those in the same tile, the
// tile, and the end of all its chunks.
extern "C" __global__ void divide(int rows, int cols, int nnz, int sms,
                                  const int* __restrict__ bucket_chunk, int* __restrict__ spans) {
  const int row_blocks = row_blocks_of(rows), tiles = tiles_of(cols);
  const int blocks = min(sms * (1024 / BLOCK), nnz);
  const long long steps = bucket_chunk[tiles * row_blocks] + (long long)TILE_COST * (tiles - 1);
  for (int block = threadIdx.x; block < blocks; block += blockDim.x) {
    const int first = chunk_after(steps * block / blocks, bucket_chunk, tiles, row_blocks);
    const int last = chunk_after(steps * (block + 1) / blocks, bucket_chunk, tiles, row_blocks);
    const int at = first < last ? find_last(bucket_chunk, tiles, row_blocks, 0, first) : 0;
    const int end = min(last, bucket_chunk[(at + 1) * row_blocks]);
    ((int4*)spans)[block] = make_int4(first, end, at, last);
  }
}

// A block per bucket: counts become how far the row's entries in the tile move, their slot less
// their place in COO.
extern "C" __global__ void place_rows(int rows, const int* __restrict__ bucket_chunk,
                                      const int* __restrict__ firsts, int* __restrict__ counts) {
  __shared__ int warp_sums[32];
  const int row_blocks = row_blocks_of(rows);
  const size_t cells = (size_t)(blockIdx.x / row_blocks) * rows;
  const long long begin = (long long)(blockIdx.x % row_blocks) * ROW_BLOCK;
  const long long end = min((long long)rows, begin + ROW_BLOCK);
  int slot = bucket_chunk[blockIdx.x] * CHUNK;
  for (long long first = begin; first < end; first += 1024) {
    const long long row = first + threadIdx.x;
    const int here = row < end ? counts[cells + row] : 0;
    const int2 scanned = block_scan(here, warp_sums);
    if (here > 0) counts[cells + row] = slot + scanned.x - firsts[cells + row];
    slot += scanned.y;
  }
}

extern "C" __global__ void scatter(int rows, int nnz, const int* __restrict__ row_idx,
                                   const int* __restrict__ col_idx, const real* __restrict__ vals,
                                   const int* __restrict__ counts, real* __restrict__ tile_vals,
                                   unsigned short* __restrict__ tile_cols,
                                   unsigned short* __restrict__ tile_rows) {
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= nnz) return;
  const int row = row_idx[k], col = col_idx[k];
  const int slot = (int)k + counts[(size_t)(col / COLS) * rows + row];
  tile_vals[value_slot(slot)] = vals[k];
  tile_cols[slot] = (unsigned short)(col % COLS);
  tile_rows[slot] = (unsigned short)(row % ROW_BLOCK);
}

// A warp per chunk: marks where runs of equal rows begin, and clears the slots after a bucket's
// last entry. tile_heads: a bit for each entry of a lane that begins a run, and in the upper byte
// how many runs begin in the lanes before. tile_rows, until now a row for each entry, gets one for
// each run. chunk_info: row block and runs.
extern "C" __global__ void mark(int rows, int cols, const int* __restrict__ bucket_chunk,
                                const int* __restrict__ bucket_entries,
                                unsigned* __restrict__ chunk_info,
                                unsigned short* __restrict__ tile_heads,
                                unsigned short* __restrict__ tile_rows,
                                unsigned short* __restrict__ tile_cols,
                                real* __restrict__ tile_vals) {
  const long long chunk = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  const int row_blocks = row_blocks_of(rows), buckets = tiles_of(cols) * row_blocks;
  if (chunk >= bucket_chunk[buckets]) return;
  const int bucket = find_last(bucket_chunk, buckets, 1, 0, chunk);
  const long long slot = chunk * CHUNK;
  const long long left = bucket_entries[bucket] - (chunk - bucket_chunk[bucket]) * CHUNK;
  int row[EACH];
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int k = lane * EACH + i;
    row[i] = k < left ? tile_rows[slot + k] : -1;
    if (k < left) continue;
    tile_vals[value_slot((int)slot + k)] = 0;
    tile_cols[slot + k] = 0;
    tile_rows[slot + k] = 0;
  }
  int before = __shfl_up_sync(ALL, row[EACH - 1], 1);
  if (lane == 0) before = -1;  // of no row
  unsigned heads = 0;          // entries that begin a run
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    if (row[i] >= 0 && row[i] != before) heads |= 1u << i;
    before = row[i];
  }
  const int runs = warp_scan(__popc(heads));
  int run = runs - __popc(heads);
  tile_heads[chunk * 32 + lane] = (unsigned short)(run << 8 | heads);
  if (lane == 31) chunk_info[chunk] = (unsigned)(bucket % row_blocks) << 12 | (unsigned)runs;
  __syncwarp();  // all rows have been read
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    if (heads >> i & 1) tile_rows[slot + run++] = (unsigned short)row[i];
  }
}

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
