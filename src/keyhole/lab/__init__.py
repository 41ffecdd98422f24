"""The laboratory: worlds and data, simulation, plots, studies, and the audit of the paper.

Import each part separately, such as `keyhole.lab.worlds`: plots need matplotlib, worlds do not.
"""
