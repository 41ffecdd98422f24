cpdef double chance_of(
    double[::1] location, double[::1] scale, double[::1] count, Py_ssize_t place
) noexcept nogil
