cdef class RecentIds:
    cdef set older, younger
    cdef bint remembers

    cpdef add(self, str decision_id)
    cdef bint has(self, str decision_id) except -1
