//! base coo
//! param TILE 147456
//! let CHUNK 256
//! require 147456%TILE==0 and TILE%4608==0
//! require rows*tiles<=8*nnz+65536
//! require nnz+CHUNK*buckets<2000000000
//! size tiles ceildiv(cols*itemsize,TILE)
//! size buckets tiles*ceildiv(rows,16384)
//! size max_chunks nnz//CHUNK+buckets
//! size max_shares sms*147456//TILE
//! derived counts int rows*tiles zero
//! derived firsts int rows*tiles
//! derived bucket_entries int buckets
//! derived bucket_chunk int buckets+1
//! derived spans int 4*max_shares
//! derived chunk_info unsigned max_chunks
//! derived tile_heads ushort 32*max_chunks
//! derived tile_rows ushort CHUNK*max_chunks
//! derived tile_cols ushort CHUNK*max_chunks
//! derived tile_vals real CHUNK*max_chunks
//! prepare coltile_count grid=ceildiv(nnz,256) block=256
//! prepare coltile_sum_buckets grid=buckets block=1024
//! prepare coltile_place_buckets grid=min(buckets,1) block=1024
//! prepare coltile_divide grid=min(nnz,1) block=1024
//! prepare coltile_place_rows grid=buckets block=1024
//! prepare coltile_scatter grid=ceildiv(nnz,256) block=256
//! prepare coltile_mark grid=ceildiv(nnz,2048)+buckets block=256

// Entries sorted by tiles of columns whose x fits into TILE bytes of shared memory, where a gather
// costs next to nothing (column blocking: Im, Yelick and Vuduc, 2004; tiles in shared memory: Yang,
// Parthasarathy and Sadayappan, 2011). Within a tile they keep the order of rows, and each bucket,
// a tile's entries in ROW_BLOCK rows, begins with a chunk of its own: bucket b with chunk
// bucket_chunk[b], tile after tile. A chunk has CHUNK entries, EACH neighbours for each lane of a
// warp: 16-bit columns within the tile in tile_cols, values in tile_vals at value_slot(entry),
// zeros after a bucket's last. A lane's tile_heads has a bit for each of its entries that begins a
// run of equal rows, and in the upper byte how many runs begin in the lanes before. tile_rows has,
// from chunk * CHUNK on, the row of each run within its row block; chunk_info is row block << 12 |
// runs. Blocks of BLOCK threads, min(max_shares, nnz) of them, share the work: the int4 at 4 *
// block of spans holds the first chunk, the end of those in the same tile, the tile, and the end of
// all.

constexpr int BLOCK = TILE / 144;               // threads: 1024 a multiprocessor
constexpr int COLS = TILE / (int)sizeof(real);  // columns of a tile
constexpr int EACH = CHUNK / 32;                // entries of a chunk that a lane takes, neighbours
constexpr int ROW_BLOCK = 16384;                // rows of a bucket
constexpr int VECTOR = 16 / (int)sizeof(real);

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

namespace preparing {

constexpr unsigned ALL = 0xffffffffu;
constexpr int TILE_COST = TILE / (8 * CHUNK);  // chunks that are read while a tile is loaded

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

// The chunk that is reached after `steps` of the way through all chunks, on which TILE_COST steps
// lie between two tiles.
__device__ int chunk_after(long long steps, const int* bucket_chunk, int tiles, int row_blocks) {
  const int at = find_last(bucket_chunk, tiles, row_blocks, TILE_COST, steps);
  return (int)min(steps - (long long)TILE_COST * at,
                  (long long)bucket_chunk[(at + 1) * row_blocks]);
}

}  // namespace preparing

// Entries of each row in each tile, and the first of them: in a row they are neighbours.
extern "C" __global__ void coltile_count(int rows, int nnz, const int* __restrict__ row_idx,
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
extern "C" __global__ void coltile_sum_buckets(int rows, const int* __restrict__ counts,
                                               int* __restrict__ bucket_entries) {
  using namespace preparing;
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
extern "C" __global__ void coltile_place_buckets(int rows, int cols,
                                                 const int* __restrict__ bucket_entries,
                                                 int* __restrict__ bucket_chunk) {
  using namespace preparing;
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

// For each block of the multiplication its first chunk, the end of those in the same tile, the
// tile, and the end of all its chunks.
extern "C" __global__ void coltile_divide(int rows, int cols, int nnz, int sms,
                                          const int* __restrict__ bucket_chunk,
                                          int* __restrict__ spans) {
  using namespace preparing;
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
extern "C" __global__ void coltile_place_rows(int rows, const int* __restrict__ bucket_chunk,
                                              const int* __restrict__ firsts,
                                              int* __restrict__ counts) {
  using namespace preparing;
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

extern "C" __global__ void coltile_scatter(
    int rows, int nnz, const int* __restrict__ row_idx, const int* __restrict__ col_idx,
    const real* __restrict__ vals, const int* __restrict__ counts, real* __restrict__ tile_vals,
    unsigned short* __restrict__ tile_cols, unsigned short* __restrict__ tile_rows) {
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
extern "C" __global__ void coltile_mark(int rows, int cols, const int* __restrict__ bucket_chunk,
                                        const int* __restrict__ bucket_entries,
                                        unsigned* __restrict__ chunk_info,
                                        unsigned short* __restrict__ tile_heads,
                                        unsigned short* __restrict__ tile_rows,
                                        unsigned short* __restrict__ tile_cols,
                                        real* __restrict__ tile_vals) {
  using namespace preparing;
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
