"""`cooper serve`: a reward that learns, over HTTP.

A request goes through these files: `server.py` (the process; token, size, load), `app.py` (routes, limits, waiting),
`wire.py` (JSON to records and back), `worker.py` (the queue, batches, when to commit; the Prometheus page),
`training.py` (the state: score, commit, checkpoint, recovery, and what it refuses) and `history.py` (journals and
checkpoints on disk, and the assistant's replies for a replay). `config.py` has the settings, `client.py` the clients.
"""
