from keyhole.core.kernels.choosing cimport Chooser
from keyhole.core.kernels.core cimport Core
from keyhole.core.kernels.recent cimport RecentIds


cdef class Choice:
    cdef public object _arm, _score, _id, _run, _predicted, _learned_by, _probability, _score_params
    cdef public long long _number
    cdef public bint _is_for_all, _has_missing
    cdef public double _epsilon
    cdef public Py_ssize_t _column, _n_arms
    cdef readonly object _observation
    cdef double[::1] y

    cpdef _set(self, object arm, object score, object observation, bint is_for_all)
    cpdef str _name(self)


cdef class Tally:
    cdef public object run
    cdef public long long decisions, additions


cdef class Online:
    cdef readonly Chooser chooser
    cdef Core core
    cdef Tally tally
    cdef RecentIds recent
    cdef readonly tuple names
    cdef tuple token
    cdef dict parameters
    cdef type kind
    cdef unsigned long long[::1] normals, uniforms
    cdef double[::1] z
    cdef double largest
    # The last decision, and what was kept of its product P y.
    cdef Choice last
    cdef Py_ssize_t last_stamp, last_slot

    cdef bint usable(self, double[::1] y) noexcept nogil
