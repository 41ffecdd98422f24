from keyhole.core.kernels.choosing cimport Chooser
from keyhole.core.kernels.core cimport Core
from keyhole.core.kernels.observing cimport RowObserver
from keyhole.core.kernels.recent cimport RecentIds


cdef class Choice:
    cdef public object _arm, _score, _id, _run, _predicted, _learned_by, _probability, _score_params, _grown, _recipe, _description, _design
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


cdef class Everyday:
    cdef readonly RowObserver observer
    cdef readonly double offset, next_look, predicted
    cdef bint predicts
    # The sample of rewards; there is none if n_values is 0.
    cdef Py_ssize_t n_values
    cdef double[:, ::1] reward_values, reward
    cdef long long[::1] reward_seen, reward_stride


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
    cdef Py_ssize_t last_stamp, last_slot, last_row
    # The length of an observation, and what is done to it; rows as the posterior sees them.
    cdef Py_ssize_t dim
    cdef double offset
    cdef bint takes_missing
    cdef readonly Everyday everyday
    cdef readonly object grown, recipe
    cdef double[:, ::1] design, spare

    cdef object choose_observed(self, object own, Py_ssize_t n)
    cdef Py_ssize_t place_of(self, double* y, Py_ssize_t stride) except -1
    cdef object made(self, Py_ssize_t place, object seen, Py_ssize_t n)
    cdef bint is_everyday(self, Choice choice) except -1
    cdef object learn_observed(self, Py_ssize_t i, Choice choice, double reward, Py_ssize_t slot, bint known)
    cdef bint has_missing(self, double[::1] y) noexcept nogil
    cdef bint usable(self, double[::1] y) noexcept nogil
    cdef int missing_in(self, double[:, ::1] rows) noexcept nogil
