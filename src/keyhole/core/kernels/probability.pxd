cpdef double chance_of(
    double[::1] location, double[::1] scale, double[::1] count, Py_ssize_t place
) noexcept nogil
cpdef double mixed(double best, double epsilon, Py_ssize_t n_arms) noexcept nogil
cpdef double propensity_weight(double epsilon, Py_ssize_t n_arms, double probability) noexcept nogil


cdef class Chances:
    cdef Py_ssize_t n
    cdef double[::1] location, scale, slope, centre, mass, chance, out
    cdef Py_ssize_t[::1] arm
