"""Where models live: what every engine offers, and the engines."""
