"""A sink of your own: it writes a few metrics to a CSV file in the run's folder.

In YAML: sinks: [{kind: "sink:Csv", columns: [reward/mean, policy/loss]}]
"""

from pathlib import Path

from cooper_rl.record import Sink, SinkConfig, SinkRun


class Csv(SinkConfig):
    """Writes one line a step."""

    columns: tuple[str, ...] = ("reward/mean", "policy/loss")
    """The metrics to write."""

    def open(self, run: SinkRun) -> Sink:
        """The open sink. `run.purge_step` is the first step that a resumed run repeats."""
        return CsvSink(run.directory / "metrics.csv", self.columns)


class CsvSink(Sink):
    """Holds the open file."""

    def __init__(self, path: Path, columns: tuple[str, ...]):
        self.columns = columns
        self.file = path.open("a", encoding="utf-8")

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Write the line of a step."""
        line = ",".join([str(step), *(f"{metrics[name]:.4g}" for name in self.columns)])
        self.file.write(line + "\n")
        print("own sink:", line)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


if __name__ == "__main__":
    from tiny_run import train

    train(sinks=[Csv()])
