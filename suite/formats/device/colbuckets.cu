//! base csr
//! param SEGMENT_BYTES 32768
//! param TILE_BYTES 98304
//! param PER_SM 2
//! let CHUNK 32
//! let MAX_TILES 256
//! require SEGMENT_BYTES%4096==0 and SEGMENT_BYTES<=253952
//! require TILE_BYTES%16==0 and TILE_BYTES<=262144
//! require tiles<=MAX_TILES
//! require rows<=4*nnz+65536
//! require max_slots<2000000000
//! size tiles ceildiv(cols*itemsize,TILE_BYTES)
//! size segments nnz*itemsize//SEGMENT_BYTES+1
//! size max_chunks nnz//CHUNK+tiles*segments
//! size max_slots nnz+CHUNK*tiles*segments
//! size max_spots segments*(SEGMENT_BYTES//itemsize+CHUNK*tiles)
//! derived begins unsigned segments*SEGMENT_BYTES//itemsize//32 zero
//! derived bucket_at int tiles*segments
//! derived tile_at int tiles+1 zero
//! derived segment_chunks int segments
//! derived segment_row int segments+1
//! derived continued int segments+1
//! derived share_chunk int sms*PER_SM+1
//! derived chunk_to int max_chunks
//! derived tile_vals real max_slots
//! derived tile_cols ushort max_slots
//! derived spots ushort max_spots
//! prepare colbuckets_mark_rows grid=ceildiv(rows,256) block=256
//! prepare colbuckets_count grid=segments block=1024
//! prepare colbuckets_place_tiles grid=1 block=MAX_TILES
//! prepare colbuckets_scatter grid=segments block=1024
//! prepare colbuckets_cut_shares grid=ceildiv(sms*PER_SM+1,64) block=64
//! prepare colbuckets_cut_rows grid=ceildiv(segments+1,64) block=64

// Entries in buckets, one for each tile of columns and segment of the CSR order (propagation
// blocking: Beamer, Asanovic and Patterson, 2017), for products that are formed tile by tile, with
// x in shared memory, and summed segment by segment. A bucket fills chunks of CHUNK entries, the
// last with zeros. Tile t has the chunks from tile_at[t] on: chunk c has its values and columns
// within the tile from c * CHUNK of tile_vals and tile_cols on, and its products belong to chunk
// chunk_to[c] of an array of max_spots products. There segment s has segment_chunks[s] chunks from
// s * (SEGMENT / CHUNK + tiles) on, and spots says for each product the spot_of its entry within
// the segment, DUMP for what only fills up. share_chunk: the first chunk of each of sms * PER_SM
// shares of equal work. segment_row[s] is the first row that begins in or after segment s,
// continued[s] the row that goes on into it, or -1; begins has a bit for each entry in CSR order
// that is the first of its row. row_ptr is that of csr.

constexpr int TILE = TILE_BYTES / (int)sizeof(real);        // columns of a tile
constexpr int SEGMENT = SEGMENT_BYTES / (int)sizeof(real);  // entries of a segment
constexpr int SUMMERS = SEGMENT_BYTES / 128;                // threads that sum one
constexpr int SPAN = SEGMENT / SUMMERS;                     // neighbours that one of them sums
constexpr int DUMP = SUMMERS * (SPAN + 1);                  // spot of products that fill up a chunk

// The sizes `tiles` and `segments`.
__device__ int tiles_of(int cols) { return cols / TILE + (cols % TILE > 0); }
__device__ int segments_of(int nnz) { return nnz / SEGMENT + 1; }

// Where entry k of a segment lies in shared memory: spans begin in different banks.
__device__ int spot_of(int k) { return k + k / SPAN; }

// The last tile that begins at or before the key: at its first chunk, and `cost` later for each
// tile up to it.
__device__ int tile_of(long long key, const int* tile_at, int tiles, int chunk_cost, int cost) {
  int low = 0, high = tiles;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    const long long at = (long long)tile_at[middle] * chunk_cost + (long long)middle * cost;
    (at <= key ? low : high) = middle;
  }
  return low;
}

namespace preparing {

constexpr unsigned ALL = 0xffffffffu;

// Blocks share the work by bytes: those of a chunk, and as much for a tile as is loaded in the time
// it takes.
constexpr int CHUNK_COST = CHUNK * (2 * (int)sizeof(real) + 2);

// Sum of the values of all threads before this one, and of all threads; every thread takes part.
__device__ int2 block_scan(int value, int* warp_sums) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  int sum = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int below = __shfl_up_sync(ALL, sum, step);
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

// Takes the next place in a tile for each lane; lanes without an entry say -1.
__device__ int take_place(int tile, int* taken) {
  const int lane = threadIdx.x % 32;
  const unsigned peers = __match_any_sync(ALL, tile);
  const int leader = __ffs(peers) - 1;
  int place = 0;
  if (lane == leader && tile >= 0) place = atomicAdd(&taken[tile], __popc(peers));
  return __shfl_sync(ALL, place, leader) + __popc(peers & ((1u << lane) - 1));
}

__device__ int chunks_for(int entries) { return (entries + CHUNK - 1) / CHUNK; }

// How many entries of this thread block's segment each tile has.
__device__ void count_entries(int tiles, int nnz, const int* col_idx, int* entries) {
  const long long first = (long long)blockIdx.x * SEGMENT;
  const long long end = min((long long)nnz, first + SEGMENT);
  for (int t = threadIdx.x; t < tiles; t += blockDim.x) entries[t] = 0;
  __syncthreads();
  for (long long k = first + threadIdx.x; k - threadIdx.x % 32 < end; k += blockDim.x)
    take_place(k < end ? col_idx[k] / TILE : -1, entries);
  __syncthreads();
}

}  // namespace preparing

// A bit for each entry that is the first of its row.
extern "C" __global__ void colbuckets_mark_rows(int rows, const int* __restrict__ row_ptr,
                                                unsigned* __restrict__ begins) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int k = row_ptr[row];
  if (k < row_ptr[row + 1]) atomicOr(&begins[k / 32], 1u << k % 32);
}

// Finds room for each bucket among those of its tile, in any order: bucket_at is its first chunk
// there, tile_at how many the tile has.
extern "C" __global__ void colbuckets_count(int cols, int nnz, const int* __restrict__ col_idx,
                                            int* __restrict__ tile_at,
                                            int* __restrict__ bucket_at) {
  using namespace preparing;
  __shared__ int entries[MAX_TILES];
  const int tiles = tiles_of(cols);
  count_entries(tiles, nnz, col_idx, entries);
  for (int t = threadIdx.x; t < tiles; t += blockDim.x) {
    const int chunks = chunks_for(entries[t]);
    bucket_at[(size_t)blockIdx.x * tiles + t] = chunks > 0 ? atomicAdd(&tile_at[t], chunks) : 0;
  }
}

// How many chunks tiles have becomes where they begin.
extern "C" __global__ void colbuckets_place_tiles(int cols, int* __restrict__ tile_at) {
  using namespace preparing;
  __shared__ int warp_sums[32];
  const int tiles = tiles_of(cols), t = threadIdx.x;
  const int2 chunks = block_scan(t < tiles ? tile_at[t] : 0, warp_sums);
  if (t < tiles) tile_at[t] = chunks.x;
  if (t == 0) tile_at[tiles] = chunks.y;
}

extern "C" __global__ void colbuckets_scatter(
    int cols, int nnz, const int* __restrict__ col_idx, const real* __restrict__ vals,
    const int* __restrict__ tile_at, const int* __restrict__ bucket_at,
    int* __restrict__ segment_chunks, int* __restrict__ chunk_to, real* __restrict__ tile_vals,
    unsigned short* __restrict__ tile_cols, unsigned short* __restrict__ spots) {
  using namespace preparing;
  // Where the tile's bucket begins: the chunk of its entries, and that of its products.
  __shared__ int chunk_at[MAX_TILES], to_at[MAX_TILES];
  __shared__ int entries[MAX_TILES], warp_sums[32];
  const int tiles = tiles_of(cols), lane = threadIdx.x % 32, thread = threadIdx.x;
  const long long first = (long long)blockIdx.x * SEGMENT;
  const long long end = min((long long)nnz, first + SEGMENT);
  count_entries(tiles, nnz, col_idx, entries);
  const int2 to = block_scan(thread < tiles ? chunks_for(entries[thread]) : 0, warp_sums);
  if (thread < tiles) {
    chunk_at[thread] = tile_at[thread] + bucket_at[(size_t)blockIdx.x * tiles + thread];
    to_at[thread] = blockIdx.x * (SEGMENT / CHUNK + tiles) + to.x;
    entries[thread] = 0;  // now those that have their place
  }
  if (thread == 0) segment_chunks[blockIdx.x] = to.y;
  __syncthreads();
  for (long long k = first + thread; k - lane < end; k += blockDim.x) {
    const int tile = k < end ? col_idx[k] / TILE : -1;
    const int place = take_place(tile, entries);
    if (tile < 0) continue;
    const size_t at = (size_t)chunk_at[tile] * CHUNK + place;
    tile_vals[at] = vals[k];
    tile_cols[at] = (unsigned short)(col_idx[k] - tile * TILE);
    spots[(size_t)to_at[tile] * CHUNK + place] = (unsigned short)spot_of((int)(k - first));
    if (place % CHUNK == 0) chunk_to[at / CHUNK] = to_at[tile] + place / CHUNK;
  }
  __syncthreads();
  // What is left of each bucket's last chunk.
  for (int t = thread / 32; t < tiles; t += blockDim.x / 32) {
    const int filled = entries[t] % CHUNK, place = entries[t] - filled + lane;
    if (filled == 0 || lane < filled) continue;
    tile_vals[(size_t)chunk_at[t] * CHUNK + place] = 0;
    tile_cols[(size_t)chunk_at[t] * CHUNK + place] = 0;
    spots[(size_t)to_at[t] * CHUNK + place] = DUMP;
  }
}

// The first chunk of each thread block of `multiply`. Loading a tile counts before its chunks.
extern "C" __global__ void colbuckets_cut_shares(int cols, int sms, const int* __restrict__ tile_at,
                                                 int* __restrict__ share_chunk) {
  using namespace preparing;
  const int share = blockIdx.x * blockDim.x + threadIdx.x, shares = sms * PER_SM;
  if (share > shares) return;
  const int tiles = tiles_of(cols), chunks = tile_at[tiles];
  const long long work = (long long)chunks * CHUNK_COST + (long long)tiles * TILE_BYTES;
  const long long wanted = work * share / shares - TILE_BYTES;
  const int at = tile_of(wanted, tile_at, tiles, CHUNK_COST, TILE_BYTES);
  const long long chunk = (wanted - (long long)at * TILE_BYTES) / CHUNK_COST;
  const int tile_end = tile_at[min(at + 1, tiles)];
  share_chunk[share] = (int)min(max(chunk, (long long)tile_at[at]), (long long)tile_end);
}

// The first row that begins in or after each segment, and the row that goes on into it, or -1.
extern "C" __global__ void colbuckets_cut_rows(int rows, int nnz, const int* __restrict__ row_ptr,
                                               int* __restrict__ segment_row,
                                               int* __restrict__ continued) {
  const int segment = blockIdx.x * blockDim.x + threadIdx.x;
  if (segment > segments_of(nnz)) return;
  const long long key = (long long)segment * SEGMENT;
  int low = 0, high = rows;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (row_ptr[middle] < key) low = middle + 1;
    if (low <= middle) high = middle;
  }
  segment_row[segment] = low;
  continued[segment] = low > 0 && row_ptr[low] > key ? low - 1 : -1;
}
