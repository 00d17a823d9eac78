"""`cooper serve`: a reward that learns, over HTTP.

A request goes through `connections.py` (how many, how long they may wait), `gate.py` (token, browsers, size, load),
`app.py` (routes, limits, waiting), `wire.py` (JSON to records and back), `worker.py` (the queue, when to commit;
Prometheus), `training.py` (the state, and what it refuses), `ledger.py` (the answers of the step under way) and
`history.py` (journals and checkpoints, the assistant's replies for a replay). `requests.py` has the request to score
and its refusal. `server.py` is the process.
"""
