"""What is shown while a training runs: the live view and TensorBoard logs."""
