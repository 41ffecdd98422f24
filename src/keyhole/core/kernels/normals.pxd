cdef unsigned long long next_bits(unsigned long long[::1] state) noexcept nogil
cdef double next_uniform(unsigned long long[::1] state) noexcept nogil
cdef void draw_uniforms(unsigned long long[::1] state, double[::1] out) noexcept nogil
cdef void draw_normals(unsigned long long[::1] state, double[::1] out, Py_ssize_t n) noexcept nogil
# For draw_normals alone. What is declared here is not copied into its callers by the compiler: in
# the loop it would take registers, and a sixth more time.
cdef double unsure(unsigned long long[::1] state, Py_ssize_t strip, double x) noexcept nogil
