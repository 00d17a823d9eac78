"""The embedded arithmetic world: questions, answers, solutions and wrong solutions."""
