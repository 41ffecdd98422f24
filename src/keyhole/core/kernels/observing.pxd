from keyhole.core.kernels.missing cimport Predictor, Sums


cdef void sample(double[:, ::1] values, long long[::1] seen, long long[::1] stride, double[:, ::1] rows, Py_ssize_t first, Py_ssize_t n) noexcept nogil


cdef class RowObserver:
    cdef readonly Py_ssize_t dim, n_columns, n_crosses
    cdef long long[:, ::1] crosses
    cdef readonly bint intercept, watches, samples, scales
    cdef readonly int fill
    cdef readonly double seen
    cdef Sums sums, snapshot
    cdef Predictor predictor
    cdef double[::1] low, high, origin, inverse
    cdef double[:, ::1] sample_values
    cdef long long[::1] sample_seen, sample_stride

    cdef void fill_in(self, double[:, ::1] rows, Py_ssize_t first, Py_ssize_t n) noexcept nogil
    cdef void convert(self, double[:, ::1] rows, Py_ssize_t first, double[:, ::1] out, Py_ssize_t start, Py_ssize_t n) noexcept nogil
    cdef bint is_far(self, double[:, ::1] rows, Py_ssize_t first, Py_ssize_t n) noexcept nogil
    cdef void see(self, double[:, ::1] rows, Py_ssize_t first, Py_ssize_t n) noexcept nogil
