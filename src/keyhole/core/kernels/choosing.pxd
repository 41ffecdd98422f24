from keyhole.core.kernels.core cimport Core
from keyhole.core.kernels.exploring cimport Explorer


cdef class Chooser:
    cdef readonly Core core
    cdef readonly Explorer explorer
    cdef readonly Py_ssize_t n_arms
    cdef readonly bint keeps
    cdef long long[::1] parameter_of
    cdef double[::1] location, scale, score
    # What the last choice has left: the slot of the chosen arm's P y, or -1, and its score.
    cdef Py_ssize_t slot
    cdef double value
    # While choosing: the best score so far; location and scale of one that rules out others; the
    # width of every arm without rewards, once it is known.
    cdef double best, top, top_scale, alike_width
    # With `keeps`, the parameters of the scores that count, (3, n_arms), and how many columns it takes.
    cdef readonly object score_params
    cdef double[:, ::1] columns
    # With `describes`, mean, width, optimism and dispersion of every arm, (4, n_arms).
    cdef readonly bint describes
    cdef readonly object description
    cdef double[:, ::1] parts
    # The columns of the chosen arm, and of all arms without rewards, or -1.
    cdef Py_ssize_t n_columns, column, alike

    cdef Py_ssize_t choose(self, double* y, Py_ssize_t stride, double* z, double coin, double tie) except -1 nogil
    cdef double chance(self) noexcept nogil
    cdef bint passes(self, Py_ssize_t k, Py_ssize_t stride) noexcept nogil
    cdef Py_ssize_t look_at(self, Py_ssize_t k, double* y, Py_ssize_t stride, double z) noexcept nogil
    cdef void predict(self, double* y, Py_ssize_t stride) noexcept nogil
    cdef Py_ssize_t upper_bounds(self, double* y, Py_ssize_t stride, double* z) noexcept nogil
    cdef Py_ssize_t argmax_score(self) noexcept nogil
    cdef Py_ssize_t one_of_best(self, double best, double tie) noexcept nogil
    cdef void keep_score_params(self, Py_ssize_t chosen, Py_ssize_t stride) noexcept nogil
