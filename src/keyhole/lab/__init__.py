"""The laboratory: worlds and data, simulation, plots, studies, and the audit of the paper.

Each part is imported by itself, as `keyhole.lab.worlds`: plots need matplotlib, and worlds do not.
"""
