//! base csr
//! param WIDTH 16
//! param PIECE 512
//! require WIDTH <= 255
//! require rows*WIDTH<=8*nnz+1048576
//! size max_long min(rows,nnz//(WIDTH+1))+1
//! size max_pieces nnz//PIECE+max_long
//! derived ell_col int ceildiv(rows,32)*32*WIDTH
//! derived ell_val real ceildiv(rows,32)*32*WIDTH
//! derived ell_len uchar ceildiv(rows,32)*32 zero
//! derived counts int 2 zero
//! derived long_row int max_long
//! derived long_first int max_long
//! derived piece_start int max_pieces
//! derived piece_size int max_pieces
//! prepare hyb_pieces_split grid=ceildiv(rows,256) block=256
//! prepare hyb_pieces_cut grid=min(rows,4*sms) block=256

// HYB (Bell and Garland, 2009) with a balanced tail: the first WIDTH entries of each row lie as
// ELLPACK in slices of 32 rows, entry k of row r at (r / 32 * WIDTH + k) * 32 + r % 32 of ell_col
// and ell_val; row r has ell_len[r] there, the others have the value 0 and column 0. What is longer
// stays in CSR, cut into pieces of at most PIECE entries: piece i has the piece_size[i] entries of
// col_idx and vals from piece_start[i] on. counts[0] rows are longer, in any order: row long_row[j]
// has its pieces in order from long_first[j] on. counts[1] is the number of all pieces; at most
// max_long rows and max_pieces pieces.

// How many pieces a row of so many entries has.
__device__ int pieces_of(int length) { return (length - WIDTH + PIECE - 1) / PIECE; }

// The regular part goes to slices; a row with more announces its pieces.
extern "C" __global__ void hyb_pieces_split(int rows, const int* __restrict__ row_ptr,
                                            const int* __restrict__ col_idx,
                                            const real* __restrict__ vals,
                                            int* __restrict__ ell_col, real* __restrict__ ell_val,
                                            unsigned char* __restrict__ ell_len,
                                            int* __restrict__ counts, int* __restrict__ long_row,
                                            int* __restrict__ long_first) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int begin = row_ptr[row], length = row_ptr[row + 1] - begin;
  const size_t slot = (size_t)(row / 32) * (32 * WIDTH) + row % 32;
  ell_len[row] = (unsigned char)min(length, WIDTH);
  for (int k = 0; k < WIDTH; ++k) {
    ell_col[slot + k * 32] = k < length ? col_idx[begin + k] : 0;
    ell_val[slot + k * 32] = k < length ? vals[begin + k] : real(0);
  }
  if (length <= WIDTH) return;
  const int at = atomicAdd(&counts[0], 1);
  long_row[at] = (int)row;
  long_first[at] = atomicAdd(&counts[1], pieces_of(length));
}

// A block per long row lists its pieces.
extern "C" __global__ void hyb_pieces_cut(const int* __restrict__ row_ptr,
                                          const int* __restrict__ counts,
                                          const int* __restrict__ long_row,
                                          const int* __restrict__ long_first,
                                          int* __restrict__ piece_start,
                                          int* __restrict__ piece_size) {
  const int many = counts[0];
  for (int at = blockIdx.x; at < many; at += gridDim.x) {
    const int row = long_row[at];
    const int begin = row_ptr[row] + WIDTH, length = row_ptr[row + 1] - begin;
    for (int i = threadIdx.x; i < (length + PIECE - 1) / PIECE; i += blockDim.x) {
      piece_start[long_first[at] + i] = begin + i * PIECE;
      piece_size[long_first[at] + i] = min(PIECE, length - i * PIECE);
    }
  }
}
