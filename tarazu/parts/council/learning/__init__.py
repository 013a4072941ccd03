"""How the best value of a lever is learned.

value     what is known of one value: mean, interval
memory    a context for each pattern, bounded, to disk and back
levels    rewards of different demand made comparable
ours      `tarazu`: all of it together
"""
