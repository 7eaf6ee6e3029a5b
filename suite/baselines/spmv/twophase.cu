//! op spmv
//! format csr
//! choose PER_SM 1 2
//! choose SEGMENT_BYTES 32768 65536 131072
//! choose PIECE 1 8
//! let TILE_BYTES 196608
//! let CHUNK 32
//! let MAX_TILES 256
//! let RANGE 1024
//! require ceildiv(cols*itemsize*PER_SM,TILE_BYTES)<=MAX_TILES
//! require rows<=4*nnz+65536
//! require nnz+CHUNK*PIECE*ceildiv(cols*itemsize*PER_SM,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)<2000000000
//! derived row_bits unsigned nnz//32+1 zero
//! derived piece_bits unsigned RANGE//32*(nnz//RANGE+1)
//! derived pieces_before int RANGE//32*(nnz//RANGE+1)
//! derived range_pieces int nnz//RANGE+1
//! derived piece_first int nnz+1
//! derived row_piece int rows+1
//! derived bucket_at int 2*ceildiv(cols*itemsize*PER_SM,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! derived tile_at int 2*ceildiv(cols*itemsize*PER_SM,TILE_BYTES)+2 zero
//! derived segment_chunks int (nnz*itemsize//SEGMENT_BYTES+1)
//! derived segment_row int (nnz*itemsize//SEGMENT_BYTES+1)+1
//! derived continued int (nnz*itemsize//SEGMENT_BYTES+1)+1
//! derived share_chunk int sms*PER_SM+1
//! derived begins unsigned (nnz*itemsize//SEGMENT_BYTES+1)*SEGMENT_BYTES//itemsize//32 zero
//! derived chunk_info unsigned 2*(nnz//CHUNK+ceildiv(cols*itemsize*PER_SM,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1))
//! derived tile_vals real nnz+CHUNK*PIECE*ceildiv(cols*itemsize*PER_SM,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! derived tile_cols ushort nnz+CHUNK*PIECE*ceildiv(cols*itemsize*PER_SM,TILE_BYTES)*(nnz*itemsize//SEGMENT_BYTES+1)
//! derived spots ushort (nnz*itemsize//SEGMENT_BYTES+1)*(SEGMENT_BYTES//itemsize+CHUNK*ceildiv(cols*itemsize*PER_SM,TILE_BYTES))
//! workspace products real (nnz*itemsize//SEGMENT_BYTES+1)*(SEGMENT_BYTES//itemsize+CHUNK*ceildiv(cols*itemsize*PER_SM,TILE_BYTES))
//! prepare mark_rows grid=ceildiv(rows,256) block=256
//! prepare mark_pieces grid=ceildiv(nnz//RANGE+1,8) block=256
//! prepare place_ranges grid=1 block=1024
//! prepare list_pieces grid=ceildiv(nnz//RANGE+1,8) block=256
//! prepare point_rows grid=ceildiv(rows+1,256) block=256
//! prepare count grid=(nnz*itemsize//SEGMENT_BYTES+1) block=1024
//! prepare place_tiles grid=1 block=MAX_TILES
//! prepare scatter grid=(nnz*itemsize//SEGMENT_BYTES+1) block=1024
//! prepare cut_shares grid=ceildiv(sms*PER_SM+1,64) block=64
//! prepare cut_rows grid=ceildiv((nnz*itemsize//SEGMENT_BYTES+1)+1,64) block=64
//! launch multiply grid=sms*PER_SM block=1024//PER_SM shared=TILE_BYTES//PER_SM
//! launch sum_rows grid=(nnz*itemsize//SEGMENT_BYTES+1) block=SEGMENT_BYTES//128 shared=SEGMENT_BYTES+SEGMENT_BYTES//128*itemsize+16

// Where columns and rows are scattered, 32-byte accesses to the L2 take the time, be they gathers
// of x or atomic adds into y. Two steps need neither (propagation blocking: Beamer, Asanovic and
// Patterson, 2017). A piece is up to PIECE neighbours of a row in one tile of columns; pieces lie
// in buckets, one for each tile and segment of the CSR order, longest first, 32 side by side as in
// SELL. `multiply` goes through them tile by tile, x in shared memory, and writes each piece's
// product to its bucket's place in the segment; `sum_rows` puts a segment's products back into CSR
// order in shared memory and sums rows there. All coalesced: 6 bytes an entry and 10 a piece, of
// which 8 stay in the L2.

#define TILE ((int)(TILE_BYTES / PER_SM / sizeof(real)))  // columns of a tile
#define SEGMENT ((int)(SEGMENT_BYTES / sizeof(real)))     // pieces of a segment
#define THREADS (1024 / PER_SM)                           // of multiply
#define SUMMERS (SEGMENT_BYTES / 128)                     // threads of sum_rows
#define SPAN (SEGMENT / SUMMERS)                          // neighbours that one of them sums
#define DUMP (SUMMERS * (SPAN + 1))                       // spot of products that fill up a chunk
#define BATCH (sizeof(real) == 4 ? 2 : 1)                 // vectors of four on their way
#define LINES (sizeof(real) == 4 ? 3 : 1)                 // further lines on their way
#define EVERY 0xffffffffu

// Shares of work are cut by bytes: those of a line, of a chunk, and of what is loaded in the time
// that it takes to load a tile.
#define LINE_COST 192
#define CHUNK_COST (136 + LINE_COST)
#define TILE_COST (TILE_BYTES / PER_SM)

// A chunk is 32 pieces of one bucket. Its lines hold an entry of each: first lines of all chunks
// come first, in their order, then the further lines of chunks with longer pieces.
// chunk_info: lines less one and place of the products; first further line.
#define LINES_SHIFT 27

__device__ int tiles_of(int cols) { return cols / TILE + (cols % TILE > 0); }
__device__ int max_segments(int nnz) { return nnz / SEGMENT + 1; }
// Where entry k of a segment lies in shared memory: spans begin in different banks.
__device__ int spot_of(int k) { return k + k / SPAN; }

// The last tile whose first chunk is no later than this one.
__device__ int tile_of(int chunk, const int2* tile_at, int tiles) {
  int low = 0, high = tiles;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (tile_at[middle].x <= chunk) {
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
    const int below = __shfl_up_sync(EVERY, sum, step);
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

// Takes the next place of a key for each lane; lanes without a piece say -1.
__device__ int take_place(int key, int* taken) {
  const int lane = threadIdx.x % 32;
  const unsigned peers = __match_any_sync(EVERY, key);
  const int leader = __ffs(peers) - 1;
  int place = 0;
  if (lane == leader && key >= 0) place = atomicAdd(&taken[key], __popc(peers));
  return __shfl_sync(EVERY, place, leader) + __popc(peers & ((1u << lane) - 1));
}

// A bit for each entry that is the first of its row.
extern "C" __global__ void mark_rows(int rows, const int* __restrict__ row_ptr,
                                     unsigned* __restrict__ row_bits) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int k = row_ptr[row];
  if (k < row_ptr[row + 1]) atomicOr(&row_bits[k / 32], 1u << k % 32);
}

// A bit for each entry that begins a piece: a warp takes RANGE entries, where pieces begin anew.
extern "C" __global__ void mark_pieces(int nnz, const int* __restrict__ col_idx,
                                       const unsigned* __restrict__ row_bits,
                                       unsigned* __restrict__ piece_bits,
                                       int* __restrict__ range_pieces) {
  const int range = (int)(((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32);
  const int lane = threadIdx.x % 32;
  if (range > nnz / RANGE) return;
  int last_tile = -1, last_begin = 0, pieces = 0;
  for (int i = 0; i < RANGE; i += 32) {
    const long long k = (long long)range * RANGE + i + lane;
    const int tile = k < nnz ? col_idx[k] / TILE : -1;
    const unsigned rows = k - lane <= nnz ? row_bits[k / 32] : 0;
    int before = __shfl_up_sync(EVERY, tile, 1);
    if (lane == 0) before = last_tile;
    const unsigned begun = __ballot_sync(EVERY, tile != before || (rows >> lane & 1));
    const unsigned here = begun & (EVERY >> (31 - lane));
    const int begin = here != 0 ? i + 31 - __clz(here) : last_begin;
    const unsigned bits = __ballot_sync(EVERY, k < nnz && (i + lane - begin) % PIECE == 0);
    if (lane == 0) piece_bits[k / 32] = bits;
    pieces += __popc(bits);
    last_tile = __shfl_sync(EVERY, tile, 31);
    last_begin = __shfl_sync(EVERY, begin, 31);
  }
  if (lane == 0) range_pieces[range] = pieces;
}

// How many pieces ranges have becomes how many there are before them.
extern "C" __global__ void place_ranges(int nnz, int* __restrict__ range_pieces,
                                        int* __restrict__ piece_first) {
  __shared__ int warp_sums[32];
  int pieces = 0;
  for (int first = 0; first <= nnz / RANGE; first += blockDim.x) {
    const int range = first + threadIdx.x;
    const int here = range <= nnz / RANGE ? range_pieces[range] : 0;
    const int2 scanned = block_scan(here, warp_sums);
    if (range <= nnz / RANGE) range_pieces[range] = pieces + scanned.x;
    pieces += scanned.y;
  }
  if (threadIdx.x == 0) piece_first[pieces] = nnz;
}

// The first entry of each piece, and the pieces before each word of bits.
extern "C" __global__ void list_pieces(int nnz, const unsigned* __restrict__ piece_bits,
                                       const int* __restrict__ range_pieces,
                                       int* __restrict__ pieces_before,
                                       int* __restrict__ piece_first) {
  const int range = (int)(((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32);
  const int lane = threadIdx.x % 32;
  if (range > nnz / RANGE) return;
  int pieces = range_pieces[range];
  for (int word = range * (RANGE / 32); word < (range + 1) * (RANGE / 32); ++word) {
    const unsigned bits = piece_bits[word];
    if (lane == 0) pieces_before[word] = pieces;
    if (bits >> lane & 1) {
      piece_first[pieces + __popc(bits & ((1u << lane) - 1))] = word * 32 + lane;
    }
    pieces += __popc(bits);
  }
}

// The first piece of each row, and a bit for each piece that is the first of its row.
extern "C" __global__ void point_rows(int rows, const int* __restrict__ row_ptr,
                                      const unsigned* __restrict__ piece_bits,
                                      const int* __restrict__ pieces_before,
                                      int* __restrict__ row_piece, unsigned* __restrict__ begins) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row > rows) return;
  const int k = row_ptr[row];
  const int piece = pieces_before[k / 32] + __popc(piece_bits[k / 32] & ((1u << k % 32) - 1));
  row_piece[row] = piece;
  if (row < rows && k < row_ptr[row + 1]) atomicOr(&begins[piece / 32], 1u << piece % 32);
}

// Tile and length of a piece as one number: by tile, then the longest first.
__device__ int key_of(int piece, const int* col_idx, const int* piece_first) {
  const int first = piece_first[piece], length = piece_first[piece + 1] - first;
  return col_idx[first] / TILE * PIECE + PIECE - length;
}

__device__ int chunks_for(int pieces) { return (pieces + CHUNK - 1) / CHUNK; }

// How many pieces of this thread block's segment have each key; `number` of them.
__device__ void count_keys(int number, int pieces, const int* col_idx, const int* piece_first,
                           int* keys) {
  const long long first = (long long)blockIdx.x * SEGMENT;
  const long long end = min((long long)pieces, first + SEGMENT);
  for (int i = threadIdx.x; i < number; i += blockDim.x) keys[i] = 0;
  __syncthreads();
  for (long long piece = first + threadIdx.x; piece - threadIdx.x % 32 < end; piece += blockDim.x) {
    take_place(piece < end ? key_of((int)piece, col_idx, piece_first) : -1, keys);
  }
  __syncthreads();
}

// Finds room for each bucket among those of its tile, in any order: bucket_at is its first chunk
// and further line there, tile_at how many the tile has.
extern "C" __global__ void count(int rows, int cols, const int* __restrict__ col_idx,
                                 const int* __restrict__ row_piece,
                                 const int* __restrict__ piece_first, int* __restrict__ tile_at,
                                 int* __restrict__ bucket_at) {
  __shared__ int keys[MAX_TILES * PIECE];
  const int tiles = tiles_of(cols);
  count_keys(tiles * PIECE, row_piece[rows], col_idx, piece_first, keys);
  for (int t = threadIdx.x; t < tiles; t += blockDim.x) {
    int pieces = 0, further = 0;
    for (int i = 0; i < PIECE; ++i) {
      const int chunks = chunks_for(pieces);
      pieces += keys[t * PIECE + i];
      further += (chunks_for(pieces) - chunks) * (PIECE - 1 - i);
    }
    const unsigned long long both = (unsigned long long)further << 32 | chunks_for(pieces);
    ((unsigned long long*)bucket_at)[(size_t)blockIdx.x * tiles + t] =
        pieces > 0 ? atomicAdd((unsigned long long*)tile_at + t, both) : 0;
  }
}

// How many chunks and further lines tiles have becomes where they begin.
extern "C" __global__ void place_tiles(int cols, int* __restrict__ tile_at) {
  __shared__ int warp_sums[32];
  const int tiles = tiles_of(cols), t = threadIdx.x;
  const int2 here = t < tiles ? ((int2*)tile_at)[t] : make_int2(0, 0);
  const int2 chunks = block_scan(here.x, warp_sums), lines = block_scan(here.y, warp_sums);
  if (t < tiles) ((int2*)tile_at)[t] = make_int2(chunks.x, chunks.y + lines.x);
  if (t == 0) ((int2*)tile_at)[tiles] = make_int2(chunks.y, chunks.y + lines.y);
}

// What scatter knows of a bucket: first chunk, its place in the segment, first further line.
struct Bucket {
  int chunk, to, line;
};

// Further lines of a chunk of a bucket: how many, and those before it. `before` and `lines` are
// of keys: pieces and further lines of the bucket's earlier ones. The chunk's first piece has this
// key or an earlier one.
__device__ int2 further_lines(int chunk, int key, const int* before, const int* lines) {
  while (chunks_for(before[key]) > chunk) --key;
  const int further = PIECE - 1 - key % PIECE;
  return make_int2(further, lines[key] + (chunk - chunks_for(before[key])) * further);
}

extern "C" __global__ void scatter(int rows, int cols, const int* __restrict__ col_idx,
                                   const real* __restrict__ vals, const int* __restrict__ row_piece,
                                   const int* __restrict__ piece_first,
                                   const int* __restrict__ tile_at,
                                   const int* __restrict__ bucket_at,
                                   int* __restrict__ segment_chunks,
                                   unsigned* __restrict__ chunk_info, real* __restrict__ tile_vals,
                                   unsigned short* __restrict__ tile_cols,
                                   unsigned short* __restrict__ spots) {
  __shared__ Bucket buckets[MAX_TILES];
  __shared__ int keys[MAX_TILES * PIECE], before[MAX_TILES * PIECE], lines[MAX_TILES * PIECE];
  __shared__ int warp_sums[32];
  const int tiles = tiles_of(cols), lane = threadIdx.x % 32, t = threadIdx.x;
  const long long first = (long long)blockIdx.x * SEGMENT;
  const long long end = min((long long)row_piece[rows], first + SEGMENT);
  count_keys(tiles * PIECE, row_piece[rows], col_idx, piece_first, keys);
  int pieces = 0, further = 0;
  for (int key = t * PIECE; t < tiles && key < (t + 1) * PIECE; ++key) {
    const int chunks = chunks_for(pieces), here = keys[key];
    before[key] = keys[key] = pieces;  // now the next place of the key
    lines[key] = further;
    pieces += here;
    further += (chunks_for(pieces) - chunks) * (PIECE - 1 - key % PIECE);
  }
  const int2 to = block_scan(chunks_for(pieces), warp_sums);
  if (t < tiles) {
    const int2 tile = ((const int2*)tile_at)[t];
    const int2 at = ((const int2*)bucket_at)[(size_t)blockIdx.x * tiles + t];
    const int segment_to = blockIdx.x * (SEGMENT / CHUNK + tiles);
    buckets[t] = {tile.x + at.x, segment_to + to.x, tile.y + at.y};
  }
  if (t == 0) segment_chunks[blockIdx.x] = to.y;
  __syncthreads();
  for (long long piece = first + threadIdx.x; piece - lane < end; piece += blockDim.x) {
    const int key = piece < end ? key_of((int)piece, col_idx, piece_first) : -1;
    const int place = take_place(key, keys);
    if (key < 0) continue;
    const int tile = key / PIECE, chunk = place / CHUNK, at = place % CHUNK;
    const Bucket bucket = buckets[tile];
    const int2 further = further_lines(chunk, key, before, lines);
    const int k = piece_first[piece], length = PIECE - key % PIECE;
    for (int i = 0; i <= further.x; ++i) {
      const int line = i == 0 ? bucket.chunk + chunk : bucket.line + further.y + i - 1;
      tile_vals[(size_t)line * CHUNK + at] = i < length ? vals[k + i] : (real)0;
      tile_cols[(size_t)line * CHUNK + at] =
          (unsigned short)(i < length ? col_idx[k + i] - tile * TILE : 0);
    }
    spots[(size_t)(bucket.to + chunk) * CHUNK + at] = (unsigned short)spot_of((int)(piece - first));
    if (at == 0) {
      const size_t info = (size_t)(bucket.chunk + chunk) * 2;
      chunk_info[info] = (unsigned)further.x << LINES_SHIFT | (unsigned)(bucket.to + chunk);
      chunk_info[info + 1] = (unsigned)(bucket.line + further.y);
    }
  }
  __syncthreads();
  // What is left of each bucket's last chunk.
  for (int t = threadIdx.x / 32; t < tiles; t += blockDim.x / 32) {
    const Bucket bucket = buckets[t];
    const int key = (t + 1) * PIECE - 1, pieces = keys[key], chunk = pieces / CHUNK;
    if (pieces % CHUNK == 0 || lane < pieces % CHUNK) continue;
    const int2 further = further_lines(chunk, key, before, lines);
    for (int i = 0; i <= further.x; ++i) {
      const int line = i == 0 ? bucket.chunk + chunk : bucket.line + further.y + i - 1;
      tile_vals[(size_t)line * CHUNK + lane] = 0;
      tile_cols[(size_t)line * CHUNK + lane] = 0;
    }
    spots[(size_t)(bucket.to + chunk) * CHUNK + lane] = DUMP;
  }
}

// Bytes before a chunk, where a tile counts at its beginning.
__device__ long long cost(int tiles, int chunk, int further) {
  return (long long)tiles * TILE_COST + (long long)chunk * CHUNK_COST +
         (long long)further * LINE_COST;
}

// Shares of the thread blocks of `multiply`, equal by bytes.
extern "C" __global__ void cut_shares(int cols, int sms, const int* __restrict__ tile_at,
                                      const unsigned* __restrict__ chunk_info,
                                      int* __restrict__ share_chunk) {
  const int share = blockIdx.x * blockDim.x + threadIdx.x, shares = sms * PER_SM;
  if (share > shares) return;
  const int tiles = tiles_of(cols);
  const int2 all = ((const int2*)tile_at)[tiles];
  const long long wanted = cost(tiles, all.x, all.y - all.x) * share / shares;
  int low = 0, high = all.x;
  while (low < high) {  // the first chunk with at least that much before it
    const int chunk = low + (high - low) / 2;
    const int tile = tile_of(chunk, (const int2*)tile_at, tiles);
    const int further = (int)chunk_info[2 * (size_t)chunk + 1] - all.x;
    if (cost(tile + 1, chunk, further) < wanted) {
      low = chunk + 1;
    } else {
      high = chunk;
    }
  }
  share_chunk[share] = low;
}

// The first row that begins in or after each segment, and the row that goes on into it, or -1.
extern "C" __global__ void cut_rows(int rows, int nnz, const int* __restrict__ row_piece,
                                    int* __restrict__ segment_row, int* __restrict__ continued) {
  const int segment = blockIdx.x * blockDim.x + threadIdx.x;
  if (segment > max_segments(nnz)) return;
  const long long key = (long long)segment * SEGMENT;
  int low = 0, high = rows;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (row_piece[middle] < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  segment_row[segment] = low;
  continued[segment] = low > 0 && row_piece[low] > key ? low - 1 : -1;
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

// What a thread takes at once: BATCH times four pieces of a chunk, THREADS fours apart.
struct Pieces {
  real value[BATCH][4];
  uint2 cols[BATCH], info[BATCH];
};

// Fours are counted over all chunks.
__device__ void load_pieces(int four, int end, const real* __restrict__ tile_vals,
                            const unsigned short* __restrict__ tile_cols,
                            const unsigned* __restrict__ chunk_info, Pieces& pieces) {
#pragma unroll
  for (int i = 0; i < BATCH; ++i) {
    const int at = four + i * THREADS;
    if (at < end) {
      pieces.info[i] = __ldcs((const uint2*)chunk_info + at / (CHUNK / 4));
      pieces.cols[i] = load_four(tile_cols + (size_t)at * 4);
      load_four(tile_vals + (size_t)at * 4, pieces.value[i]);
    }
  }
}

// Adds the products of further lines, LINES of them on their way at once.
__device__ void add_lines(int more, const real* __restrict__ vals,
                          const unsigned short* __restrict__ cols, const real* tile,
                          real (&product)[4]) {
  for (int line = 0; line < more; line += LINES) {
    real value[LINES][4];
    uint2 col[LINES];
#pragma unroll
    for (int i = 0; i < LINES; ++i) {
      if (line + i < more) {
        col[i] = load_four(cols + (line + i) * CHUNK);
        load_four(vals + (line + i) * CHUNK, value[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < LINES; ++i) {
      if (line + i < more) {
#pragma unroll
        for (int j = 0; j < 4; ++j) product[j] += value[i][j] * tile[nth_of(col[i], j)];
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    multiply(int cols, int nnz, const int* __restrict__ tile_at,
             const int* __restrict__ share_chunk, const unsigned* __restrict__ chunk_info,
             const real* __restrict__ tile_vals, const unsigned short* __restrict__ tile_cols,
             const int* __restrict__ continued, const real* __restrict__ x,
             real* __restrict__ products, real* __restrict__ y) {
  extern __shared__ uint4 memory[];
  const real* tile = (const real*)memory;
  const int tiles = tiles_of(cols), segments = max_segments(nnz);
  // Several segments will add to these.
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < segments; i += gridDim.x * THREADS) {
    if (continued[i] >= 0) y[continued[i]] = 0;
  }
  int first = share_chunk[blockIdx.x];
  const int last = share_chunk[blockIdx.x + 1];
  while (first < last) {
    const int at = tile_of(first, (const int2*)tile_at, tiles);
    const int tile_end = min(last, tile_at[2 * at + 2]);
    const int end = tile_end * (CHUNK / 4);
    int four = first * (CHUNK / 4) + threadIdx.x;
    Pieces next;
    load_pieces(four, end, tile_vals, tile_cols, chunk_info, next);
    const uint4* from = (const uint4*)(x + (size_t)at * TILE);
    const int vectors = (int)(((size_t)min(TILE, cols - at * TILE) * sizeof(real) + 15) / 16);
    __syncthreads();
#pragma unroll 6
    for (int i = threadIdx.x; i < vectors; i += THREADS) memory[i] = from[i];
    __syncthreads();
    for (; four < end; four += BATCH * THREADS) {
      const Pieces pieces = next;
      load_pieces(four + BATCH * THREADS, end, tile_vals, tile_cols, chunk_info, next);
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        const int here = four + i * THREADS;
        if (here >= end) break;
        real product[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
          product[j] = pieces.value[i][j] * tile[nth_of(pieces.cols[i], j)];
        const int more = PIECE > 1 ? pieces.info[i].x >> LINES_SHIFT : 0;
        const size_t entry = (size_t)pieces.info[i].y * CHUNK + here % (CHUNK / 4) * 4;
        add_lines(more, tile_vals + entry, tile_cols + entry, tile, product);
        const size_t chunk = pieces.info[i].x & ((1u << LINES_SHIFT) - 1);
        store_four(products + chunk * CHUNK + here % (CHUNK / 4) * 4, product);
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
    sum_rows(int rows, const int* __restrict__ row_piece, int cols,
             const int* __restrict__ segment_chunks, const int* __restrict__ segment_row,
             const int* __restrict__ continued, const unsigned* __restrict__ begins,
             const real* __restrict__ products, const unsigned short* __restrict__ spots,
             real* __restrict__ y) {
  extern __shared__ uint4 memory[];
  __shared__ real warp_lead[SUMMERS / 32];
  __shared__ unsigned warp_begins[SUMMERS / 32];
  real* stage = (real*)memory;
  const unsigned all = EVERY;
  const int segment = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = segment * SEGMENT, pieces = row_piece[rows];
  const int first_row = segment_row[segment], end_row = segment_row[segment + 1];
  if (first >= pieces && first_row == end_row) return;
  const int word = (int)(((long long)first + threadIdx.x * SPAN) / 32);
  const unsigned heads = begins[word] >> threadIdx.x * SPAN % 32 & all >> (32 - SPAN);
  const int four = segment * (SEGMENT / CHUNK + tiles_of(cols)) * (CHUNK / 4);
  stage_products(four, four + segment_chunks[segment] * (CHUNK / 4), products, spots, stage);
  for (int k = max(0, pieces - first) + threadIdx.x; k < SEGMENT; k += SUMMERS)
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
  if (threadIdx.x == 0 && continued[segment] >= 0) {
    real sum = lead;
    for (int w = 1; w < SUMMERS / 32 && warp_begins[w - 1] == 0; ++w) sum += warp_lead[w];
    atomicAdd(&y[continued[segment]], sum);
  }
  __syncthreads();

  const int crosses = continued[segment + 1];
  for (int row = first_row + threadIdx.x; row < end_row; row += SUMMERS) {
    const int k = row_piece[row];
    const real sum = k < row_piece[row + 1] ? stage[spot_of(k - first)] : (real)0;
    if (row == crosses) {
      atomicAdd(&y[row], sum);
    } else {
      y[row] = sum;
    }
  }
}
