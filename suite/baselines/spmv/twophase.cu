//! op spmv
//! format csr
//! choose SEGMENT_BYTES 32768 131072
//! let PER_SM 2
//! let TILE_BYTES 98304
//! let CHUNK 32
//! let MAX_TILES 256
//! require ceildiv(cols*itemsize,TILE_BYTES)<=MAX_TILES
//! require rows<=4*nnz+65536
//! require nnz+CHUNK*ceildiv(cols*itemsize,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)<2000000000
//! derived begins unsigned (nnz*itemsize//SEGMENT_BYTES+1)*SEGMENT_BYTES//itemsize//32 zero
//! derived bucket_at int ceildiv(cols*itemsize,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! derived tile_at int ceildiv(cols*itemsize,TILE_BYTES)+1 zero
//! derived segment_chunks int nnz*itemsize//SEGMENT_BYTES+1
//! derived segment_row int nnz*itemsize//SEGMENT_BYTES+2
//! derived continued int nnz*itemsize//SEGMENT_BYTES+2
//! derived share_chunk int sms*PER_SM+1
//! derived chunk_to int nnz//CHUNK+ceildiv(cols*itemsize,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! derived tile_vals real nnz+CHUNK*ceildiv(cols*itemsize,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! derived tile_cols ushort nnz+CHUNK*ceildiv(cols*itemsize,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! derived spots ushort (nnz*itemsize//SEGMENT_BYTES+1)*(SEGMENT_BYTES//itemsize+CHUNK*ceildiv(cols*itemsize,TILE_BYTES))
//! workspace products real (nnz*itemsize//SEGMENT_BYTES+1)*(SEGMENT_BYTES//itemsize+CHUNK*ceildiv(cols*itemsize,TILE_BYTES))
//! prepare mark_rows grid=ceildiv(rows,256) block=256
//! prepare count grid=nnz*itemsize//SEGMENT_BYTES+1 block=1024
//! prepare place_tiles grid=1 block=MAX_TILES
//! prepare scatter grid=nnz*itemsize//SEGMENT_BYTES+1 block=1024
//! prepare cut_shares grid=ceildiv(sms*PER_SM+1,64) block=64
//! prepare cut_rows grid=ceildiv(nnz*itemsize//SEGMENT_BYTES+2,64) block=64
//! launch multiply grid=(rows>0)*sms*PER_SM block=1024//PER_SM shared=TILE_BYTES
//! launch sum_rows grid=(rows>0)*(nnz*itemsize//SEGMENT_BYTES+1) block=SEGMENT_BYTES//128 shared=SEGMENT_BYTES+SEGMENT_BYTES//128*itemsize+16

// Where columns and rows are scattered, 32-byte accesses to the L2 take the time, be they gathers
// of x or atomic adds into y. Two steps need neither (propagation blocking: Beamer, Asanovic and
// Patterson, 2017). Entries lie in buckets, one for each tile of columns and segment of the CSR
// order. `multiply` goes through them tile by tile, x in shared memory, and writes each product to
// its bucket's place in the segment; `sum_rows` puts a segment's products back into CSR order in
// shared memory and sums rows there. All coalesced: 16 bytes an entry, of which 8 stay in the L2.

#define TILE (TILE_BYTES / (int)sizeof(real))        // columns of a tile
#define SEGMENT (SEGMENT_BYTES / (int)sizeof(real))  // entries of a segment
#define THREADS (1024 / PER_SM)                      // of multiply
#define SUMMERS (SEGMENT_BYTES / 128)                // threads of sum_rows
#define SPAN (SEGMENT / SUMMERS)                     // neighbours that one of them sums
#define DUMP (SUMMERS * (SPAN + 1))                  // spot of products that fill up a chunk
#define BATCH (sizeof(real) == 4 ? 2 : 1)            // vectors of four on their way
#define ALL 0xffffffffu

// A chunk is 32 entries of one bucket; each bucket begins with a chunk of its own. Blocks share
// the work by bytes: those of a chunk, and as much for a tile as is loaded in the time it takes.
#define CHUNK_COST (CHUNK * (2 * (int)sizeof(real) + 2))

__device__ int tiles_of(int cols) { return cols / TILE + (cols % TILE > 0); }
__device__ int max_segments(int nnz) { return nnz / SEGMENT + 1; }
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

// A bit for each entry that is the first of its row.
extern "C" __global__ void mark_rows(int rows, const int* __restrict__ row_ptr,
                                     unsigned* __restrict__ begins) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int k = row_ptr[row];
  if (k < row_ptr[row + 1]) atomicOr(&begins[k / 32], 1u << k % 32);
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

// Finds room for each bucket among those of its tile, in any order: bucket_at is its first chunk
// there, tile_at how many the tile has.
extern "C" __global__ void count(int cols, int nnz, const int* __restrict__ col_idx,
                                 int* __restrict__ tile_at, int* __restrict__ bucket_at) {
  __shared__ int entries[MAX_TILES];
  const int tiles = tiles_of(cols);
  count_entries(tiles, nnz, col_idx, entries);
  for (int t = threadIdx.x; t < tiles; t += blockDim.x) {
    const int chunks = chunks_for(entries[t]);
    bucket_at[(size_t)blockIdx.x * tiles + t] = chunks > 0 ? atomicAdd(&tile_at[t], chunks) : 0;
  }
}

// How many chunks tiles have becomes where they begin.
extern "C" __global__ void place_tiles(int cols, int* __restrict__ tile_at) {
  __shared__ int warp_sums[32];
  const int tiles = tiles_of(cols), t = threadIdx.x;
  const int2 chunks = block_scan(t < tiles ? tile_at[t] : 0, warp_sums);
  if (t < tiles) tile_at[t] = chunks.x;
  if (t == 0) tile_at[tiles] = chunks.y;
}

extern "C" __global__ void scatter(int cols, int nnz, const int* __restrict__ col_idx,
                                   const real* __restrict__ vals, const int* __restrict__ tile_at,
                                   const int* __restrict__ bucket_at,
                                   int* __restrict__ segment_chunks, int* __restrict__ chunk_to,
                                   real* __restrict__ tile_vals,
                                   unsigned short* __restrict__ tile_cols,
                                   unsigned short* __restrict__ spots) {
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
extern "C" __global__ void cut_shares(int cols, int sms, const int* __restrict__ tile_at,
                                      int* __restrict__ share_chunk) {
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
extern "C" __global__ void cut_rows(int rows, int nnz, const int* __restrict__ row_ptr,
                                    int* __restrict__ segment_row, int* __restrict__ continued) {
  const int segment = blockIdx.x * blockDim.x + threadIdx.x;
  if (segment > max_segments(nnz)) return;
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

__device__ void load_four(const float* from, float (&to)[4]) {
  const float4 v = __ldcs((const float4*)from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

__device__ void load_four(const double* from, double (&to)[4]) {
  const double2 v = __ldcs((const double2*)from), w = __ldcs((const double2*)from + 1);
  to[0] = v.x, to[1] = v.y, to[2] = w.x, to[3] = w.y;
}

__device__ void store_four(float* to, const float (&v)[4]) {
  *(float4*)to = make_float4(v[0], v[1], v[2], v[3]);
}

__device__ void store_four(double* to, const double (&v)[4]) {
  ((double2*)to)[0] = make_double2(v[0], v[1]);
  ((double2*)to)[1] = make_double2(v[2], v[3]);
}

// Four of 16 bits.
__device__ uint2 load_four(const unsigned short* from) { return __ldcs((const uint2*)from); }
__device__ int nth_of(const uint2& four, int i) {
  return (i < 2 ? four.x : four.y) >> i % 2 * 16 & 0xffff;
}

// What a thread takes at once: BATCH times four entries of a chunk, THREADS fours apart.
struct Entries {
  real value[BATCH][4];
  uint2 cols[BATCH];
  int to[BATCH];
};

// Fours are counted over all chunks.
__device__ void load_entries(int four, int end, const real* __restrict__ tile_vals,
                             const unsigned short* __restrict__ tile_cols,
                             const int* __restrict__ chunk_to, Entries& entries) {
#pragma unroll
  for (int i = 0; i < BATCH; ++i) {
    const int at = four + i * THREADS;
    if (at < end) {
      entries.to[i] = __ldcs(chunk_to + at / (CHUNK / 4));
      entries.cols[i] = load_four(tile_cols + (size_t)at * 4);
      load_four(tile_vals + (size_t)at * 4, entries.value[i]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    multiply(int cols, int nnz, const int* __restrict__ tile_at,
             const int* __restrict__ share_chunk, const int* __restrict__ chunk_to,
             const real* __restrict__ tile_vals, const unsigned short* __restrict__ tile_cols,
             const int* __restrict__ continued, const real* __restrict__ x,
             real* __restrict__ products, real* __restrict__ y) {
  extern __shared__ uint4 memory[];
  const real* tile = (const real*)memory;
  const int tiles = tiles_of(cols), segments = max_segments(nnz);
  // Several segments will add to these.
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < segments; i += gridDim.x * THREADS)
    if (continued[i] >= 0) y[continued[i]] = 0;
  int first = share_chunk[blockIdx.x];
  const int last = share_chunk[blockIdx.x + 1];
  while (first < last) {
    const int at = tile_of(first, tile_at, tiles, 1, 0);
    const int tile_end = min(last, tile_at[at + 1]);
    const int end = tile_end * (CHUNK / 4);
    int four = first * (CHUNK / 4) + threadIdx.x;
    Entries next;
    load_entries(four, end, tile_vals, tile_cols, chunk_to, next);
    const uint4* from = (const uint4*)(x + (size_t)at * TILE);
    const int vectors = (int)(((size_t)min(TILE, cols - at * TILE) * sizeof(real) + 15) / 16);
    __syncthreads();
#pragma unroll 6
    for (int i = threadIdx.x; i < vectors; i += THREADS) memory[i] = from[i];
    __syncthreads();
    for (; four < end; four += BATCH * THREADS) {
      const Entries entries = next;
      load_entries(four + BATCH * THREADS, end, tile_vals, tile_cols, chunk_to, next);
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        const int here = four + i * THREADS;
        if (here >= end) break;
        real product[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
          product[j] = entries.value[i][j] * tile[nth_of(entries.cols[i], j)];
        store_four(products + (size_t)entries.to[i] * CHUNK + here % (CHUNK / 4) * 4, product);
      }
    }
    first = tile_end;
  }
}

// Puts a segment's products into CSR order.
__device__ void stage_products(int first, int end, const real* __restrict__ products,
                               const unsigned short* __restrict__ spots, real* stage) {
  const int each = 16 / (int)sizeof(real);  // fours that a thread loads together
  for (int base = first; base < end; base += each * SUMMERS) {
    real product[each][4];
    uint2 spot[each];
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int four = base + i * SUMMERS + threadIdx.x;
      if (four < end) {
        spot[i] = load_four(spots + (size_t)four * 4);
        load_four(products + (size_t)four * 4, product[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < each; ++i) {
      if (base + i * SUMMERS + threadIdx.x < end) {
#pragma unroll
        for (int j = 0; j < 4; ++j) stage[nth_of(spot[i], j)] = product[i][j];
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(SUMMERS, 196608 / SEGMENT_BYTES)
    sum_rows(int rows, int cols, const int* __restrict__ row_ptr,
             const int* __restrict__ segment_chunks, const int* __restrict__ segment_row,
             const int* __restrict__ continued, const unsigned* __restrict__ begins,
             const real* __restrict__ products, const unsigned short* __restrict__ spots,
             real* __restrict__ y) {
  extern __shared__ uint4 memory[];
  __shared__ real warp_lead[SUMMERS / 32];
  __shared__ unsigned warp_begins[SUMMERS / 32];
  real* stage = (real*)memory;
  const int segment = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = segment * SEGMENT, entries = row_ptr[rows];
  const int first_row = segment_row[segment], end_row = segment_row[segment + 1];
  const int word = (int)(((long long)first + threadIdx.x * SPAN) / 32);
  const unsigned heads = begins[word] >> threadIdx.x * SPAN % 32 & ALL >> (32 - SPAN);
  const int four = segment * (SEGMENT / CHUNK + tiles_of(cols)) * (CHUNK / 4);
  stage_products(four, four + segment_chunks[segment] * (CHUNK / 4), products, spots, stage);
  for (int k = max(0, entries - first) + threadIdx.x; k < SEGMENT; k += SUMMERS)
    stage[spot_of(k)] = 0;
  __syncthreads();

  // From the end of the span: the sum of each row goes to the place of its first entry, and what
  // comes before the first of them belongs to a row that begins in an earlier span.
  real* span = stage + threadIdx.x * (SPAN + 1);
  real lead = 0;
#pragma unroll
  for (int i = SPAN - 1; i >= 0; --i) {
    lead += span[i];
    if (heads >> i & 1) {
      span[i] = lead;
      lead = 0;
    }
  }
  const unsigned begun = __ballot_sync(ALL, heads != 0);
  const unsigned later = begun >> lane;  // lanes from this one on in which rows begin
  const int reach = later != 0 ? __ffs(later) - 1 : 31 - lane;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const real next = __shfl_down_sync(ALL, lead, step);
    if (reach >= step) lead += next;
  }
  if (lane == 0) warp_lead[warp] = lead, warp_begins[warp] = begun;
  __syncthreads();
  real more = __shfl_down_sync(ALL, lead, 1);
  if (lane == 31) more = 0;
  if (heads != 0 && later >> 1 == 0) {  // the next warps have some of it too
    for (int w = warp + 1; w < SUMMERS / 32; ++w) {
      more += warp_lead[w];
      if (warp_begins[w] != 0) break;
    }
  }
  if (heads != 0) span[31 - __clz(heads)] += more;
  if (threadIdx.x == 0 && continued[segment] >= 0) {
    real sum = lead;
    for (int w = 1; w < SUMMERS / 32 && warp_begins[w - 1] == 0; ++w) sum += warp_lead[w];
    atomicAdd(&y[continued[segment]], sum);
  }
  __syncthreads();

  const int crosses = continued[segment + 1];
  for (int row = first_row + threadIdx.x; row < end_row; row += SUMMERS) {
    const int k = row_ptr[row];
    const real sum = k < row_ptr[row + 1] ? stage[spot_of(k - first)] : (real)0;
    if (row == crosses) atomicAdd(&y[row], sum);
    if (row != crosses) y[row] = sum;
  }
}
