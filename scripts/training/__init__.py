"""How the bundled model is made: its language, the model as it is trained, and the training."""
