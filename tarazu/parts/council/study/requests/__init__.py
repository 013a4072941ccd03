"""Requests one by one, from processes over I/O nodes to disks.

    from tarazu.parts.council.study.requests.situation import SITUATIONS, WINDOWS_S
    from tarazu.parts.council.study.requests.run import Setting, simulate

    outcome = simulate(SITUATIONS[0], Setting("twins", window_s=WINDOWS_S[3]), seed=1)
    outcome.makespan_s                          # as the user sees it
    for seen in outcome.seen:                   # one I/O node in one interval
        seen.node, seen.pattern, seen.observation.bytes_per_s, seen.window_s

`simulate(..., controller=...)` asks at each interval's end which window is next, so whatever decides online runs in
simulated time. situation: phases, and the paper's 144; system: the parts with their parameters and sources; disk: where
time goes; schedulers: on I/O nodes; situations, gains: all of them, and who gains.
"""
