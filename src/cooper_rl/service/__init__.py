"""`cooper serve`: a reward that learns, over HTTP.

A request goes through these files: `gate.py` (token, size, load), `app.py` or `shims.py` (routes), `wire.py` (JSON to
records and back), `service.py` (limits, waiting), `worker.py` (the queue, batches, when to commit), `training.py` (the
state: score, commit, checkpoint, recovery; `checks.py` has what it refuses), `book.py` (the answers of the step under
way) and `history.py` (journals and checkpoints on disk). `rewrites.py` remembers the assistant's replies for a replay.
`server.py` puts the parts together, `config.py` has the settings, `meters.py` the Prometheus page. The Python clients
are `client.py` and, without the network, `calls.py`.
"""
