"""tarazu-page: a read-only page of the whole system, for a browser.

service   the loop: mdsd is asked, the imbalance is noted
seen      what mdsd said last, and how well that is known
ring      imbalance over time, in a file of bounded size
results   what `tarazu history whatif --json` and `tarazu history report --json` have left in a directory
pages     addresses → documents, each made once for what is seen
server    HTTP: GET and HEAD, and headers that let the browser load nothing else
document  one HTML document; its style and its script: page.css, page.js
state, heat, charts, outcomes   its parts: what is amiss and allocations, OSTs by server, curves, results
markup    HTML that is escaped wherever it comes from
"""
