"""A run's record as pandas frames and matplotlib figures, in a notebook or a script. Needs pandas.

In a notebook: run = load_run("runs/my-run"); run.plot_curves()
"""

from tempfile import TemporaryDirectory

from tiny_run import SETTINGS

from cooper_rl import CooperTrainer, build_config, load_run


def show(folder: str) -> None:
    """Print what a notebook would show."""
    run = load_run(folder)
    print("load run:", run.state, "after step", run.record.step, "of", run.config["steps"])
    print("load run: accuracy by step", run.metrics["rule/accuracy"].round(2).to_dict())
    by_verdict = run.rollouts.groupby("verdict")["reward"]
    print("load run: mean reward by verdict", {verdict: round(float(paid.mean()), 2) for verdict, paid in by_verdict})
    print(run.gallery(3)[["step", "question", "text", "reward"]].to_string())
    run.plot_curves().savefig(f"{folder}/curves.png")
    run.plot_calibration().savefig(f"{folder}/calibration.png")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        settings = {**SETTINGS, "kind": "static", "steps": 2, "output_dir": folder, "name": "my-run"}
        with CooperTrainer.from_config(build_config(settings)) as trainer:
            trainer.fit()
        show(str(trainer.directory))
