"""One pytest session, as each process knows it: nothing here knows pytest.

Each process has one ``Session``. Workers only *stage* files, in a folder that all share; the controller (or the only
process) puts them in place when the session ends, and only if nothing went wrong on the way.
"""
