"""The co-trained reward over HTTP: `cooper serve`, and the clients that trainers in any process use."""
