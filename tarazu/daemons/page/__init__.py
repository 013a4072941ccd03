"""tarazu-page: a read-only page of the whole system, for a browser.

service   the loop: mdsd is asked, the imbalance is noted
seen      what mdsd said last, and how well that is known
ring      imbalance over time, in a file of bounded size
past      in the same file: each OST over time, and what became of OSTs, servers and mdsd
results   what commands' `--json` has left in a directory
pages     addresses → documents, each made once for what is seen
server    HTTP: GET and HEAD, and headers that let the browser load nothing else
document  one HTML document; its style and its script: page.css, page.js
problems, news, heat, state, charts, changes, outcomes   the first page's parts, in their order
dense     the map of thousands of OSTs, as a few drawings
single    the pages of one OST and of one server
markup, links, times   HTML that is escaped wherever it comes from; addresses; times in UTC and the browser's zone
"""
