cpdef double chance_of(
    const double[::1] location, const double[::1] scale, const double[::1] count, Py_ssize_t place
) noexcept nogil
