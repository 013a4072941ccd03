def walk(there, dist): pass
