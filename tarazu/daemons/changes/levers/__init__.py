"""The levers: how each thing is read, set, compared; one file each.

pool         OST pools: who is in them
client       a client's parameters: RPCs in flight, their size, read-ahead
listed       what those have in common that set only what a site lists
nrs          the policy that orders an OSS's requests
tbf          one rule that limits an OSS's requests
drain        a parameter that keeps new files off an OST
layout       a directory's default layout
"""
