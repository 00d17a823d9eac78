"""The losses of both models as pure functions, below the engines that minimise them."""
