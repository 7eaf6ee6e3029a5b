//! op spmv
//! format coo
//! choose TILE 36864 73728 147456
//! choose BLOCK 512 1024
//! let CHUNK 256
//! require rows*ceildiv(cols*itemsize,TILE)<=8*nnz+65536
//! require nnz+CHUNK*ceildiv(cols*itemsize,TILE)*ceildiv(rows,65536)<2000000000
//! derived counts int rows*ceildiv(cols*itemsize,TILE) zero
//! derived firsts int rows*ceildiv(cols*itemsize,TILE)
//! derived pieces int 16*ceildiv(cols*itemsize,TILE)*ceildiv(rows,65536)
//! derived bucket_entries int ceildiv(cols*itemsize,TILE)*ceildiv(rows,65536)
//! derived bucket_chunk int ceildiv(cols*itemsize,TILE)*ceildiv(rows,65536)+1
//! derived spans int 4*(sms*1024//BLOCK)
//! derived chunk_info unsigned nnz//CHUNK+ceildiv(cols*itemsize,TILE)*ceildiv(rows,65536)
//! derived tile_heads ushort 32*(nnz//CHUNK+ceildiv(cols*itemsize,TILE)*ceildiv(rows,65536))
//! derived tile_rows ushort CHUNK*(nnz//CHUNK+ceildiv(cols*itemsize,TILE)*ceildiv(rows,65536))
//! derived tile_cols ushort CHUNK*(nnz//CHUNK+ceildiv(cols*itemsize,TILE)*ceildiv(rows,65536))
//! derived tile_vals real CHUNK*(nnz//CHUNK+ceildiv(cols*itemsize,TILE)*ceildiv(rows,65536))
//! prepare count grid=ceildiv(nnz,256) block=256
//! prepare sum_pieces grid=16*ceildiv(cols*itemsize,TILE)*ceildiv(rows,65536) block=256
//! prepare place_buckets grid=min(ceildiv(cols*itemsize,TILE)*ceildiv(rows,65536),1) block=1024
//! prepare divide grid=min(nnz,1) block=1024
//! prepare place_rows grid=16*ceildiv(cols*itemsize,TILE)*ceildiv(rows,65536) block=256
//! prepare scatter grid=ceildiv(nnz,256) block=256
//! prepare mark grid=ceildiv(nnz,2048)+ceildiv(cols*itemsize,TILE)*ceildiv(rows,65536) block=256
//! init zero
//! launch coltile grid=min(sms*1024//BLOCK,nnz) block=BLOCK shared=TILE+BLOCK*33*itemsize//4

// Where columns are scattered, every entry costs a 32-byte gather of x from the L2, and that, not
// the matrix, is what takes the time. So entries are sorted by tiles of columns whose x fits into
// shared memory, where a gather costs next to nothing (column blocking: Im, Yelick and Vuduc,
// 2004; tiles in shared memory: Yang, Parthasarathy and Sadayappan, 2011). Within a tile they keep
// the order of rows; a warp takes 256 at a time and adds one sum for each run of equal rows to y.
// Entries stay at 8 bytes or less: 16-bit columns within the tile, and 16-bit rows once a run.

#define COLS (TILE / (int)sizeof(real))  // columns of a tile
#define WARPS (BLOCK / 32)
#define STAGE (CHUNK + CHUNK / 32)  // sums of a warp, a gap after every 32
#define EACH (CHUNK / 32)           // entries of a chunk that a lane takes, neighbours
#define ROW_BLOCK 65536             // rows of a bucket: those of 16 bits
#define PIECES 16                   // parts of a row block, each scanned by one thread block
#define AHEAD (sizeof(real) == 4)   // doubles leave no registers for the next chunk
#define VECTOR (16 / (int)sizeof(real))

// Buckets are ordered by tile, then row block, and begin with a chunk of their own.
__device__ int row_blocks_of(int rows) { return rows / ROW_BLOCK + (rows % ROW_BLOCK > 0); }
__device__ int tiles_of(int cols) { return cols / COLS + (cols % COLS > 0); }

// Where the value of entry k is kept, so that all lanes of a warp load 16 bytes side by side.
__device__ int value_slot(int k) {
  const int lane = k % CHUNK / EACH, nth = k % EACH;
  return k - k % CHUNK + nth / VECTOR * (32 * VECTOR) + lane * VECTOR + nth % VECTOR;
}

// The last i with from[i * stride] <= key, where from[0] <= key and from[count * stride] > key.
__device__ int find_last(const int* from, int count, int stride, int key) {
  int low = 0, high = count;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (from[(size_t)middle * stride] <= key) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Sum of the values of all threads before this one, and of all threads; every thread takes part.
__device__ int2 block_scan(int value, int* warp_sums) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  int sum = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int below = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += below;
  }
  __syncthreads();  // the sums of an earlier call have been read
  if (lane == 31) warp_sums[warp] = sum;
  __syncthreads();
  int before = 0, all = 0;
  for (int w = 0; w < warps; ++w) {
    if (w == warp) before = all;
    all += warp_sums[w];
  }
  return make_int2(before + sum - value, all);
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

struct Rows {
  long long first, end;  // rows of the piece of a bucket that a thread block takes
  size_t cells;          // where the counts of the bucket's tile begin
};

__device__ Rows rows_of_piece(int rows) {
  const int bucket = blockIdx.x / PIECES, row_blocks = row_blocks_of(rows);
  Rows piece;
  piece.first = (long long)(bucket % row_blocks) * ROW_BLOCK +
                (long long)(blockIdx.x % PIECES) * (ROW_BLOCK / PIECES);
  piece.end = min((long long)rows, piece.first + ROW_BLOCK / PIECES);
  piece.cells = (size_t)(bucket / row_blocks) * rows;
  return piece;
}

extern "C" __global__ void sum_pieces(int rows, const int* __restrict__ counts,
                                      int* __restrict__ pieces) {
  __shared__ int warp_sums[32];
  const Rows piece = rows_of_piece(rows);
  int sum = 0;
  for (long long row = piece.first + threadIdx.x; row < piece.end; row += blockDim.x) {
    sum += counts[piece.cells + row];
  }
  const int all = block_scan(sum, warp_sums).y;
  if (threadIdx.x == 0) pieces[blockIdx.x] = all;
}

// First chunk of each bucket; sums of pieces become the slot of their first entry.
extern "C" __global__ void place_buckets(int rows, int cols, int* __restrict__ pieces,
                                         int* __restrict__ bucket_entries,
                                         int* __restrict__ bucket_chunk) {
  __shared__ int warp_sums[32];
  const int buckets = tiles_of(cols) * row_blocks_of(rows);
  int base = 0;
  for (int first = 0; first < buckets; first += blockDim.x) {
    const int bucket = first + threadIdx.x;
    int* piece = pieces + (size_t)bucket * PIECES;
    int entries = 0;
    if (bucket < buckets) {
      for (int i = 0; i < PIECES; ++i) entries += piece[i];
    }
    const int2 scanned = block_scan((entries + CHUNK - 1) / CHUNK, warp_sums);
    if (bucket < buckets) {
      bucket_entries[bucket] = entries;
      bucket_chunk[bucket] = base + scanned.x;
      int slot = (base + scanned.x) * CHUNK;
      for (int i = 0; i < PIECES; ++i) {
        const int here = piece[i];
        piece[i] = slot;
        slot += here;
      }
    }
    base += scanned.y;
  }
  if (threadIdx.x == 0) bucket_chunk[buckets] = base;
}

// For each block of the multiplication its first chunk, the end of those in the same tile, the
// tile, and the end of all its chunks.
extern "C" __global__ void divide(int rows, int cols, int nnz, int sms,
                                  const int* __restrict__ bucket_chunk, int* __restrict__ spans) {
  const int row_blocks = row_blocks_of(rows), tiles = tiles_of(cols);
  const int blocks = min(sms * (1024 / BLOCK), nnz);
  const long long chunks = bucket_chunk[tiles * row_blocks];
  for (int block = threadIdx.x; block < blocks; block += blockDim.x) {
    const int first = (int)(chunks * block / blocks), last = (int)(chunks * (block + 1) / blocks);
    const int at = first < last ? find_last(bucket_chunk, tiles, row_blocks, first) : 0;
    const int end = min(last, bucket_chunk[(at + 1) * row_blocks]);
    ((int4*)spans)[block] = make_int4(first, end, at, last);
  }
}

// Counts become how far the row's entries in the tile move: their slot less their place in COO.
extern "C" __global__ void place_rows(int rows, const int* __restrict__ pieces,
                                      const int* __restrict__ firsts, int* __restrict__ counts) {
  __shared__ int warp_sums[32];
  const Rows piece = rows_of_piece(rows);
  int slot = pieces[blockIdx.x];
  for (long long first = piece.first; first < piece.end; first += blockDim.x) {
    const long long row = first + threadIdx.x;
    const size_t cell = piece.cells + row;
    const int here = row < piece.end ? counts[cell] : 0;
    const int2 scanned = block_scan(here, warp_sums);
    if (here > 0) counts[cell] = slot + scanned.x - firsts[cell];
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

// A warp per chunk: marks where runs of equal rows begin, keeps one row for each run, clears the
// slots after a bucket's last entry. tile_heads: a bit for each entry of a lane that begins a run,
// and in the upper byte how many runs begin in the lanes before. chunk_info: row block and runs.
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
  const int bucket = find_last(bucket_chunk, buckets, 1, (int)chunk);
  const long long slot = chunk * CHUNK;
  const long long left = bucket_entries[bucket] - (chunk - bucket_chunk[bucket]) * CHUNK;
  int row[EACH];
#pragma unroll
  for (int i = 0; i < EACH; ++i) row[i] = tile_rows[slot + lane * EACH + i];
  int previous = __shfl_up_sync(0xffffffffu, row[EACH - 1], 1);
  if (lane == 0) previous = -1;
  unsigned heads = 0;
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int k = lane * EACH + i;
    if (k >= left) {
      tile_vals[value_slot((int)slot + k)] = 0;
      tile_cols[slot + k] = 0;
    } else if (row[i] != (i > 0 ? row[i - 1] : previous)) {
      heads |= 1u << i;
    }
  }
  int runs = __popc(heads);
  const int own = runs;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int below = __shfl_up_sync(0xffffffffu, runs, step);
    if (lane >= step) runs += below;
  }
  const int before = runs - own;
  int to = before;
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    if (heads >> i & 1) tile_rows[slot + to++] = (unsigned short)row[i];
  }
  tile_heads[chunk * 32 + lane] = (unsigned short)(before << 8 | heads);
  if (lane == 31) chunk_info[chunk] = (unsigned)(bucket % row_blocks) << 16 | (unsigned)runs;
}

__device__ void load_values(const float* from, int lane, float (&to)[EACH]) {
#pragma unroll
  for (int i = 0; i < EACH; i += 4) {
    const float4 v = __ldcs((const float4*)(from + i * 32) + lane);
    to[i] = v.x, to[i + 1] = v.y, to[i + 2] = v.z, to[i + 3] = v.w;
  }
}

__device__ void load_values(const double* from, int lane, double (&to)[EACH]) {
#pragma unroll
  for (int i = 0; i < EACH; i += 2) {
    const double2 v = __ldcs((const double2*)(from + i * 32) + lane);
    to[i] = v.x, to[i + 1] = v.y;
  }
}

// A lane's share of a chunk.
struct Share {
  real value[EACH];
  uint4 cols;  // eight of 16 bits
  unsigned heads, info;
};

__device__ Share load_share(int chunk, int lane, const real* __restrict__ tile_vals,
                            const unsigned short* __restrict__ tile_cols,
                            const unsigned short* __restrict__ tile_heads,
                            const unsigned* __restrict__ chunk_info) {
  const size_t slot = (size_t)chunk * CHUNK;
  Share share;
  share.info = __ldcs(chunk_info + chunk);
  share.heads = __ldcs(tile_heads + (size_t)chunk * 32 + lane);
  share.cols = __ldcs((const uint4*)(tile_cols + slot) + lane);
  load_values(tile_vals + slot, lane, share.value);
  return share;
}

__device__ int staged(int run) { return run + run / 32; }  // spreads strides over the banks

// Adds up the runs of a chunk in `stage`, one sum a run.
__device__ void sum_runs(const Share& share, int lane, const real* tile, real* stage) {
  const unsigned all = 0xffffffffu;
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
    sum += share.value[i] * tile[packed[i / 2] >> i % 2 * 16 & 0xffff];
  }
  // The sum of the open run at the lane's end takes in the lanes back to where the run began.
  const unsigned begun = __ballot_sync(all, heads != 0) & (all >> (31 - lane));
  const int reach = lane - (31 - __clz(begun));
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const real below = __shfl_up_sync(all, sum, step);
    if (reach >= step) sum += below;
  }
  const real carry = __shfl_up_sync(all, sum, 1);
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
  const int4 span = ((const int4*)spans)[blockIdx.x];
  int first = span.x, end = span.y, at = span.z;
  const int last = span.w;
  while (first < last) {
    Share next;
    if (AHEAD && first + warp < end) {
      next = load_share(first + warp, lane, tile_vals, tile_cols, tile_heads, chunk_info);
    }
    const uint4* from = (const uint4*)(x + (size_t)at * COLS);
    const int vectors = (min(COLS, cols - at * COLS) + VECTOR - 1) / VECTOR;
    __syncthreads();
#pragma unroll 4
    for (int i = threadIdx.x; i < vectors; i += BLOCK) memory[i] = from[i];
    __syncthreads();
    for (int chunk = first + warp; chunk < end; chunk += WARPS) {
      if (!AHEAD) next = load_share(chunk, lane, tile_vals, tile_cols, tile_heads, chunk_info);
      const Share share = next;
      if (AHEAD && chunk + WARPS < end) {
        next = load_share(chunk + WARPS, lane, tile_vals, tile_cols, tile_heads, chunk_info);
      }
      const unsigned short* run_rows = tile_rows + (size_t)chunk * CHUNK;
      real* to = y + (size_t)(share.info >> 16) * ROW_BLOCK;
      const int runs = share.info & 0xffff;
      unsigned short row[EACH];
#pragma unroll
      for (int i = 0; i < EACH; ++i) {
        if (i * 32 + lane < runs) row[i] = __ldcs(run_rows + i * 32 + lane);
      }
      sum_runs(share, lane, tile, stage);
      __syncwarp();
#pragma unroll
      for (int i = 0; i < EACH; ++i) {
        if (i * 32 + lane < runs) atomicAdd(to + row[i], stage[staged(i * 32 + lane)]);
      }
      __syncwarp();
    }
    first = end;
    if (first < last) {
      if (bucket_chunk[(++at + 1) * row_blocks] <= first) {  // the next tile is empty
        at += find_last(bucket_chunk + at * row_blocks, tiles - at, row_blocks, first);
      }
      end = min(last, bucket_chunk[(at + 1) * row_blocks]);
    }
  }
}
