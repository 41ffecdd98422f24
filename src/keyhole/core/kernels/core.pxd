cdef class Core:
    cdef readonly object state
    cdef readonly Py_ssize_t size, dim, stamp
    cdef bint defers
    cdef double[::1] prior, n, weight, scaled, squares, residual, penalty, trace, bound, staleness, pending
    cdef double[:, ::1] moment, mean, root
    cdef readonly double[:, ::1] products
    cdef double[:, :, ::1] matrices, pending_y, pending_w

    cdef double quadratic_form(self, Py_ssize_t i, double* y, Py_ssize_t slot) noexcept nogil
    cdef double quadratic_form_alone(self, Py_ssize_t i, double* y) noexcept nogil
    cdef double* covariance(self, Py_ssize_t i) noexcept nogil
    cdef double* precision(self, Py_ssize_t i) noexcept nogil
    cdef double* pending_part(self, double[:, :, ::1] buffer, Py_ssize_t i) noexcept nogil
    cdef double step(self, Py_ssize_t i, double* y, double reward, Py_ssize_t slot) noexcept nogil
    cdef bint cancels(self, Py_ssize_t i, double* y, double max_terms, double q) noexcept nogil
    cdef void update(self, Py_ssize_t i, double* y, double reward, Py_ssize_t slot, bint known) noexcept nogil
    cdef void update_weighted(self, Py_ssize_t i, double* y, double reward, double weight) noexcept nogil
    cdef double* scale_row(self, double* y, double root) noexcept nogil
    cdef void add(self, Py_ssize_t i, double* y, double reward, double weight) noexcept nogil
    cdef void defer(self, Py_ssize_t i, double* y, Py_ssize_t slot, double share) noexcept nogil
    cdef void drop_pending(self, Py_ssize_t i) noexcept nogil
    cdef void flush(self, Py_ssize_t i) noexcept nogil
    cdef void recompute(self, Py_ssize_t i) noexcept nogil
    cdef void recompute_all(self, Py_ssize_t i) noexcept nogil
    cdef void invert(self, Py_ssize_t i) noexcept nogil
    cdef bint factorize(self, Py_ssize_t i, double ridge) noexcept nogil
    cdef void lower_bound(self, Py_ssize_t i) noexcept nogil
