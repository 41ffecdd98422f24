# Pointers that no other pointer of the same call overlaps with: loops need not check for that.
cdef extern from *:
    """
    #ifdef _MSC_VER
    typedef double* __restrict keyhole_numbers;
    #else
    typedef double* restrict keyhole_numbers;
    #endif
    """
    ctypedef double* Numbers "keyhole_numbers"

cdef void lower_times(Numbers matrix, Numbers y, Numbers out, Py_ssize_t dim) noexcept nogil
cdef double lower_form(Numbers matrix, Numbers y, Py_ssize_t dim) noexcept nogil
cdef void add_square(Numbers matrices, Numbers y, Numbers w, double share, Py_ssize_t dim) noexcept nogil
cdef void add_squares(Numbers matrix, Numbers rows, double factor, Py_ssize_t n, Py_ssize_t dim, bint is_lower) noexcept nogil
cdef void project_out(Numbers out, Numbers rows, Numbers y, Py_ssize_t n, Py_ssize_t dim) noexcept nogil
