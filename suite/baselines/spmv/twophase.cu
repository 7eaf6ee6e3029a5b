//! op spmv
//! format csr
//! choose PER_SM 1 2
//! choose SEGMENT_BYTES 32768 65536 131072
//! let TILE_BYTES 196608
//! let CHUNK 32
//! let MAX_TILES 256
//! require ceildiv(cols*itemsize*PER_SM,TILE_BYTES)<=MAX_TILES
//! require rows<=4*nnz+65536
//! require nnz+CHUNK*ceildiv(cols*itemsize*PER_SM,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)<2000000000
//! derived in_tile int ceildiv(cols*itemsize*PER_SM,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! derived in_segment int ceildiv(cols*itemsize*PER_SM,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! derived tile_chunk int ceildiv(cols*itemsize*PER_SM,TILE_BYTES)+1
//! derived segment_chunk int nnz*itemsize//SEGMENT_BYTES+2
//! derived segment_row int nnz*itemsize//SEGMENT_BYTES+2
//! derived crossing int nnz*itemsize//SEGMENT_BYTES+1
//! derived share_chunk int sms*PER_SM+1
//! derived begins unsigned (nnz*itemsize//SEGMENT_BYTES+1)*SEGMENT_BYTES//itemsize//32 zero
//! derived chunk_to int nnz//CHUNK+ceildiv(cols*itemsize*PER_SM,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! derived tile_vals real nnz+CHUNK*ceildiv(cols*itemsize*PER_SM,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! derived tile_cols ushort nnz+CHUNK*ceildiv(cols*itemsize*PER_SM,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! derived spots ushort nnz+CHUNK*ceildiv(cols*itemsize*PER_SM,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! workspace products real nnz+CHUNK*ceildiv(cols*itemsize*PER_SM,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! prepare count grid=nnz*itemsize//SEGMENT_BYTES+1 block=1024
//! prepare place_in_tile grid=ceildiv(cols*itemsize*PER_SM,TILE_BYTES) block=1024
//! prepare place grid=1 block=1024
//! prepare scatter grid=nnz*itemsize//SEGMENT_BYTES+1 block=1024
//! prepare cut_rows grid=ceildiv(nnz*itemsize//SEGMENT_BYTES+2,64) block=64
//! prepare find_crossing grid=ceildiv(nnz*itemsize//SEGMENT_BYTES+1,64) block=64
//! prepare mark_rows grid=ceildiv(rows,256) block=256
//! launch multiply grid=sms*PER_SM block=1024//PER_SM shared=TILE_BYTES//PER_SM
//! launch sum_rows grid=nnz*itemsize//SEGMENT_BYTES+1 block=SEGMENT_BYTES//128 shared=SEGMENT_BYTES+SEGMENT_BYTES//128*itemsize+16

// Where columns and rows are scattered, 32-byte accesses to the L2 take the time, be they gathers
// of x or atomic adds into y. Two steps need neither (propagation blocking: Beamer, Asanovic and
// Patterson, 2017): entries lie in buckets, one for each tile of columns and segment of the CSR
// order. `multiply` goes through them tile by tile, x in shared memory, and writes products to the
// bucket's place in its segment; `sum_rows` puts a segment's products back into CSR order in shared
// memory and sums its rows there. 16 bytes an entry, all coalesced; products stay in the L2.

#define TILE ((int)(TILE_BYTES / PER_SM / sizeof(real)))  // columns of a tile
#define SEGMENT ((int)(SEGMENT_BYTES / sizeof(real)))     // entries of a segment
#define THREADS (1024 / PER_SM)                           // of multiply
#define SUMMERS (SEGMENT_BYTES / 128)                     // threads of sum_rows
#define SPAN (SEGMENT / SUMMERS)                          // neighbours that one of them sums
#define DUMP (SUMMERS * (SPAN + 1))                       // spot of products that fill up a chunk
#define TILE_COST (TILE_BYTES / PER_SM / 12 / CHUNK)      // chunks read while a tile is loaded
#define BATCH (sizeof(real) == 4 ? 2 : 1)                 // vectors of four on their way

__device__ int tiles_of(int cols) { return cols / TILE + (cols % TILE > 0); }
__device__ int segments_of(int nnz) { return nnz / SEGMENT + 1; }

// Where entry k of a segment lies in shared memory: spans begin in different banks.
__device__ int spot_of(int k) { return k + k / SPAN; }

// The last i with from[i] <= key, where from[0] <= key and from[count] > key.
__device__ int find_last(const int* from, int count, int key) {
  int low = 0, high = count;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (from[middle] <= key) {
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

// Takes the next place of a tile for each lane; lanes without an entry say tile -1.
__device__ int take_place(int tile, int* taken) {
  const int lane = threadIdx.x % 32;
  const unsigned peers = __match_any_sync(0xffffffffu, tile);
  const int leader = __ffs(peers) - 1;
  int place = 0;
  if (lane == leader && tile >= 0) place = atomicAdd(&taken[tile], __popc(peers));
  return __shfl_sync(0xffffffffu, place, leader) + __popc(peers & ((1u << lane) - 1));
}

// Chunks of each bucket: how many, for place_in_tile, and where they begin in the segment.
extern "C" __global__ void count(int cols, int nnz, const int* __restrict__ col_idx,
                                 int* __restrict__ in_tile, int* __restrict__ in_segment,
                                 int* __restrict__ segment_chunk) {
  __shared__ int taken[MAX_TILES], warp_sums[32];
  const int tiles = tiles_of(cols), t = threadIdx.x;
  const long long first = (long long)blockIdx.x * SEGMENT,
                  end = min((long long)nnz, first + SEGMENT);
  if (t < tiles) taken[t] = 0;
  __syncthreads();
  for (long long k = first + t; k - t % 32 < end; k += blockDim.x) {
    take_place(k < end ? col_idx[k] / TILE : -1, taken);
  }
  __syncthreads();
  const int chunks = t < tiles ? (taken[t] + CHUNK - 1) / CHUNK : 0;
  const int2 scanned = block_scan(chunks, warp_sums);
  if (t < tiles) {
    in_tile[(size_t)t * gridDim.x + blockIdx.x] = chunks;
    in_segment[(size_t)blockIdx.x * tiles + t] = scanned.x;
  }
  if (t == 0) segment_chunk[blockIdx.x] = scanned.y;
}

// Counts become the sums of those before; returns the sum of all.
__device__ int scan_counts(int* counts, int number, int* warp_sums) {
  int base = 0;
  for (int first = 0; first < number; first += blockDim.x) {
    const int i = first + threadIdx.x;
    const int2 scanned = block_scan(i < number ? counts[i] : 0, warp_sums);
    if (i < number) counts[i] = base + scanned.x;
    base += scanned.y;
  }
  return base;
}

// Where buckets begin in their tile, a thread block for each tile.
extern "C" __global__ void place_in_tile(int nnz, int* __restrict__ in_tile,
                                         int* __restrict__ tile_chunk) {
  __shared__ int warp_sums[32];
  const int segments = segments_of(nnz);
  const int all = scan_counts(in_tile + (size_t)blockIdx.x * segments, segments, warp_sums);
  if (threadIdx.x == 0) tile_chunk[blockIdx.x] = all;
}

// Where tiles and segments begin, and the shares of the thread blocks of `multiply`: equal times,
// where the beginning of a tile costs as much as TILE_COST chunks.
extern "C" __global__ void place(int cols, int nnz, int sms, int* __restrict__ tile_chunk,
                                 int* __restrict__ segment_chunk, int* __restrict__ share_chunk) {
  __shared__ int warp_sums[32], tile_time[MAX_TILES + 1];
  const int tiles = tiles_of(cols), segments = segments_of(nnz), shares = sms * PER_SM;
  const int chunks = scan_counts(tile_chunk, tiles, warp_sums);
  scan_counts(segment_chunk, segments, warp_sums);
  __syncthreads();
  for (int t = threadIdx.x; t <= tiles; t += blockDim.x) {
    tile_time[t] = (t < tiles ? tile_chunk[t] : chunks) + t * TILE_COST;
  }
  if (threadIdx.x == 0) {
    tile_chunk[tiles] = chunks;
    segment_chunk[segments] = chunks;
  }
  __syncthreads();
  for (int share = threadIdx.x; share <= shares; share += blockDim.x) {
    int from = chunks;
    if (share < shares && tiles > 0) {
      const int time = (int)((long long)tile_time[tiles] * share / shares);
      const int t = find_last(tile_time, tiles, time);
      from = tile_chunk[t] + max(0, time - tile_time[t] - TILE_COST);
    }
    share_chunk[share] = from;
  }
}

extern "C" __global__ void scatter(int cols, int nnz, const int* __restrict__ col_idx,
                                   const real* __restrict__ vals, const int* __restrict__ in_tile,
                                   const int* __restrict__ in_segment,
                                   const int* __restrict__ tile_chunk,
                                   const int* __restrict__ segment_chunk,
                                   int* __restrict__ chunk_to, real* __restrict__ tile_vals,
                                   unsigned short* __restrict__ tile_cols,
                                   unsigned short* __restrict__ spots) {
  __shared__ int taken[MAX_TILES], from[MAX_TILES], to[MAX_TILES];  // from, to: first chunks
  const int tiles = tiles_of(cols), lane = threadIdx.x % 32;
  const long long first = (long long)blockIdx.x * SEGMENT,
                  end = min((long long)nnz, first + SEGMENT);
  for (int t = threadIdx.x; t < tiles; t += blockDim.x) {
    taken[t] = 0;
    from[t] = tile_chunk[t] + in_tile[(size_t)t * gridDim.x + blockIdx.x];
    to[t] = segment_chunk[blockIdx.x] + in_segment[(size_t)blockIdx.x * tiles + t];
  }
  __syncthreads();
  for (long long k = first + threadIdx.x; k - lane < end; k += blockDim.x) {
    const int col = k < end ? col_idx[k] : 0, tile = k < end ? col / TILE : -1;
    const int nth = take_place(tile, taken);
    if (tile < 0) continue;
    tile_vals[from[tile] * CHUNK + nth] = vals[k];
    tile_cols[from[tile] * CHUNK + nth] = (unsigned short)(col - tile * TILE);
    spots[to[tile] * CHUNK + nth] = (unsigned short)spot_of((int)(k - first));
  }
  __syncthreads();
  for (int t = threadIdx.x / 32; t < tiles; t += blockDim.x / 32) {
    const int chunks = (taken[t] + CHUNK - 1) / CHUNK;
    for (int nth = taken[t] + lane; nth < chunks * CHUNK; nth += 32) {
      tile_vals[from[t] * CHUNK + nth] = 0;
      tile_cols[from[t] * CHUNK + nth] = 0;
      spots[to[t] * CHUNK + nth] = DUMP;
    }
    for (int chunk = lane; chunk < chunks; chunk += 32) chunk_to[from[t] + chunk] = to[t] + chunk;
  }
}

// The first row that begins in or after each segment.
extern "C" __global__ void cut_rows(int rows, int nnz, const int* __restrict__ row_ptr,
                                    int* __restrict__ segment_row) {
  const int segment = blockIdx.x * blockDim.x + threadIdx.x;
  if (segment > segments_of(nnz)) return;
  const long long key = (long long)segment * SEGMENT;
  int low = 0, high = rows;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (row_ptr[middle] < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  segment_row[segment] = low;
}

// The row that goes on from each segment into the next, or -1.
extern "C" __global__ void find_crossing(int nnz, const int* __restrict__ row_ptr,
                                         const int* __restrict__ segment_row,
                                         int* __restrict__ crossing) {
  const int segment = blockIdx.x * blockDim.x + threadIdx.x;
  if (segment >= segments_of(nnz)) return;
  const long long end = ((long long)segment + 1) * SEGMENT;
  const int row = segment_row[segment + 1] - 1;
  crossing[segment] = end < nnz && row_ptr[row + 1] > end ? row : -1;
}

// A bit for each entry that is the first of its row.
extern "C" __global__ void mark_rows(int rows, const int* __restrict__ row_ptr,
                                     unsigned* __restrict__ begins) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int k = row_ptr[row];
  if (k < row_ptr[row + 1]) atomicOr(&begins[k / 32], 1u << k % 32);
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

// What a thread takes at once: BATCH times four entries, THREADS fours apart.
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
    multiply(int cols, int nnz, const int* __restrict__ tile_chunk,
             const int* __restrict__ share_chunk, const int* __restrict__ chunk_to,
             const real* __restrict__ tile_vals, const unsigned short* __restrict__ tile_cols,
             const int* __restrict__ crossing, const real* __restrict__ x,
             real* __restrict__ products, real* __restrict__ y) {
  extern __shared__ uint4 memory[];
  const real* tile = (const real*)memory;
  const int tiles = tiles_of(cols), segments = segments_of(nnz);
  // Several segments will add to these.
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < segments; i += gridDim.x * THREADS) {
    if (crossing[i] >= 0) y[crossing[i]] = 0;
  }
  int first = share_chunk[blockIdx.x];
  const int last = share_chunk[blockIdx.x + 1];
  while (first < last) {
    const int at = find_last(tile_chunk, tiles, first);
    const int tile_end = min(last, tile_chunk[at + 1]);
    const int end = tile_end * (CHUNK / 4);
    int four = first * (CHUNK / 4) + threadIdx.x;
    Entries next;
    load_entries(four, end, tile_vals, tile_cols, chunk_to, next);
    const uint4* from = (const uint4*)(x + (size_t)at * TILE);
    const int vectors = (int)(((size_t)min(TILE, cols - at * TILE) * sizeof(real) + 15) / 16);
    __syncthreads();
#pragma unroll 4
    for (int i = threadIdx.x; i < vectors; i += THREADS) memory[i] = from[i];
    __syncthreads();
    while (four < end) {
      const Entries entries = next;
      load_entries(four + BATCH * THREADS, end, tile_vals, tile_cols, chunk_to, next);
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        const int here = four + i * THREADS;
        if (here < end) {
          real product[4];
#pragma unroll
          for (int j = 0; j < 4; ++j)
            product[j] = entries.value[i][j] * tile[nth_of(entries.cols[i], j)];
          const size_t slot = (size_t)entries.to[i] * CHUNK + here % (CHUNK / 4) * 4;
          store_four(products + slot, product);
        }
      }
      four += BATCH * THREADS;
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
    sum_rows(int nnz, const int* __restrict__ row_ptr, const int* __restrict__ segment_chunk,
             const int* __restrict__ segment_row, const int* __restrict__ crossing,
             const unsigned* __restrict__ begins, const real* __restrict__ products,
             const unsigned short* __restrict__ spots, real* __restrict__ y) {
  extern __shared__ uint4 memory[];
  __shared__ real warp_lead[SUMMERS / 32];
  __shared__ unsigned warp_begins[SUMMERS / 32];
  real* stage = (real*)memory;
  const unsigned all = 0xffffffffu;
  const int segment = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = segment * SEGMENT;
  const int word = (int)(((long long)first + threadIdx.x * SPAN) / 32);
  const unsigned heads = begins[word] >> threadIdx.x * SPAN % 32 & all >> (32 - SPAN);
  stage_products(segment_chunk[segment] * (CHUNK / 4), segment_chunk[segment + 1] * (CHUNK / 4),
                 products, spots, stage);
  for (int k = nnz - first + threadIdx.x; k < SEGMENT; k += SUMMERS) stage[spot_of(k)] = 0;
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
  const unsigned begun = __ballot_sync(all, heads != 0);
  const unsigned later = begun >> lane;  // lanes from this one on in which rows begin
  const int reach = later != 0 ? __ffs(later) - 1 : 31 - lane;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const real next = __shfl_down_sync(all, lead, step);
    if (reach >= step) lead += next;
  }
  if (lane == 0) {
    warp_lead[warp] = lead;
    warp_begins[warp] = begun;
  }
  __syncthreads();
  real more = __shfl_down_sync(all, lead, 1);
  if (lane == 31) more = 0;
  if (heads != 0 && later >> 1 == 0) {  // the next warps have some of it too
    for (int w = warp + 1; w < SUMMERS / 32; ++w) {
      more += warp_lead[w];
      if (warp_begins[w] != 0) break;
    }
  }
  if (heads != 0) span[31 - __clz(heads)] += more;
  if (threadIdx.x == 0 && segment > 0 && crossing[segment - 1] >= 0) {
    real sum = lead;
    for (int w = 1; w < SUMMERS / 32 && warp_begins[w - 1] == 0; ++w) sum += warp_lead[w];
    atomicAdd(&y[crossing[segment - 1]], sum);
  }
  __syncthreads();

  const int row_end = segment_row[segment + 1], crosses = crossing[segment];
  for (int row = segment_row[segment] + threadIdx.x; row < row_end; row += SUMMERS) {
    const int k = row_ptr[row];
    const real sum = k < row_ptr[row + 1] ? stage[spot_of(k - first)] : (real)0;
    if (row == crosses) {
      atomicAdd(&y[row], sum);
    } else {
      y[row] = sum;
    }
  }
}
