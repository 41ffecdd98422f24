from keyhole.core.kernels.core cimport Core


cdef class Explorer:
    cdef readonly Core core
    cdef double optimism, dispersion, epsilon, radius, level, diversity, patience, decay
    cdef bint learned, uncertain, weighted
    # How things stand at this choice.
    cdef bint greedy
    cdef double pooled
    # Probability of a uniform choice now.
    cdef double rate

    cdef int look(self) except -1 nogil
    cpdef double rate_after(self, double n) noexcept nogil
    cdef double n_rewards(self) noexcept nogil
    cdef double misfit(self, Py_ssize_t i) noexcept nogil
    cdef double freedom(self, Py_ssize_t i) noexcept nogil
    cdef double pooled_variance(self) noexcept nogil
    cdef double dispersion_of(self, Py_ssize_t i) noexcept nogil
    cdef double optimism_of(self, Py_ssize_t i) noexcept nogil
    cdef int is_diverse(self) except -1 nogil
    cdef double lower_eigenvalue(self, Py_ssize_t i) noexcept nogil
