cdef class Sums:
    cdef readonly Py_ssize_t dim
    cdef double[:, ::1] pairs, total, product
    cdef double[::1] origin
    # Workspace: which entries are seen, 1 or 0, and up to four rows from their origins.
    cdef double[::1] present, flat
    cdef double[:, ::1] shift
    # Whether an entry was seen for the first time since this was last set to False.
    cdef bint has_new

    cdef void add(self, double[:, ::1] rows, Py_ssize_t first, Py_ssize_t n) noexcept nogil
    cdef void add_alike(self, double[:, ::1] rows, Py_ssize_t first, Py_ssize_t n) noexcept nogil
    cdef double covariance(self, Py_ssize_t j, Py_ssize_t k) noexcept nogil
    cdef double mean(self, Py_ssize_t j) noexcept nogil
    cdef double most(self) noexcept nogil
    cdef void copy_from(self, Sums other) noexcept nogil


cdef class Weights:
    cdef Sums sums
    # Indices of the entries that are seen and vary, and their number.
    cdef long long[::1] seen
    cdef Py_ssize_t n_seen
    cdef double[::1] scale, gain
    # Correlations of the seen entries, and their Cholesky factor with a ridge.
    cdef double[:, ::1] correlation, root

    cdef void take(self, double[:, ::1] rows, Py_ssize_t t) noexcept nogil
    cdef void correlate(self) noexcept nogil
    cdef double lack(self) noexcept nogil
    cdef bint factorize(self, double ridge) noexcept nogil
    cdef void predict(self, Py_ssize_t j) noexcept nogil
    cdef double solve(self) noexcept nogil


cdef class Predictor:
    cdef Weights weights
    cdef Sums sums
    cdef Py_ssize_t size, n_kept, next
    cdef unsigned long long[::1] hashes
    cdef unsigned char[:, ::1] masks
    cdef double[:, :, ::1] gains
    cdef double[::1] row, means

    cdef void clear(self) noexcept nogil
    cdef void fill(self, double[:, ::1] rows, Py_ssize_t first, Py_ssize_t n) noexcept nogil
    cdef Py_ssize_t pattern(self, double[:, ::1] rows, Py_ssize_t t) noexcept nogil
    cdef void solve_pattern(self, double[:, ::1] rows, Py_ssize_t t, Py_ssize_t slot) noexcept nogil
    cdef bint fits(self, double[:, ::1] rows, Py_ssize_t t, Py_ssize_t slot) noexcept nogil
