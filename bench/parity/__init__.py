"""The same model on a GPU and on the CPU: how far apart they are, and how fast each way runs."""
