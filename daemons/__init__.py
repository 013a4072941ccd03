"""The daemons: each a loop around the rooms of tarazu (installed as `tarazu.daemons`).

ossd      tells mdsd how one OSS is, or an LNet router
routers/  ossd's other half, a process of its own, sets which LNet routers jobs' data take: service, keeper, kept, …
mdsd      allocating (from the queue to the answer), batch (what is placed together), allocation_requests (is one sane,
          what does its answer promise), per_user (the queue), limits, request_rate, rights (what a key may say), system
          (what it knows of servers), exclusions, user_lists (whom it leaves alone), book (what must not be forgotten),
          ledger_clock, outbox (answers that wait for the disk), audit, mdsd_status, mds_watch (load of the MDS), health
          (of OSTs), target_news (which steps are told of it), counting (how many stripes a step's files get by curves)
router_plan/  of mdsd: which LNet routers running jobs' nodes get; routers/ of ossd: sets them. Both say more
standby/  two mdsds: roles (which answers), feed (what the active one sends), following, handover (after a split)
clientd   planner (a step's history → a plan), configure (layouts of the expected files), left_to_lustre (which files it
          leaves alone, and why), stored_plans, questions (what mdsd is asked), asking (commands and the page
          ask clientd, else mdsd), notices and node_notices (what
          it is told), reports (ended steps), client_pools, shares, leaders (those that wait for news of OSTs)
forecasts/  clientd's processes of forecasts: pool (its own side), frames (what is said), server (forks them), work,
          curves (an application's bandwidth curve)
pool/       keeps an OST pool of good OSTs: keeper, notes (what was there), calls (of lctl)
council/  what nodes of a group should have in force, learned from what they see; announcer/ tells it what a node sees,
          and has set what it decides; levers/ sets it, and restores what was there. All say more
bursts/   tarazu-burstd: traffic of compute nodes, a file a day; whose jobs they ran; which nodes Slurm should give
page/     tarazu-page: a read-only page of the whole system. It says more; http_server is metrics' too
metrics/  of each daemon: its families (mdsd, ossd …), exporter (the loop is asked), server (HTTP)
process   what each does the same way; with it claim, log_lines, secrets, service_manager (systemd); noted (what is set
          on a node is on disk before), program (calls of lnetctl and lctl)
"""
